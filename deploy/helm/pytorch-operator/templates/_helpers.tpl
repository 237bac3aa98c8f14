{{- define "pytorch-operator.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "pytorch-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pytorch-operator.labels" -}}
{{ include "pytorch-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: pytorch-operator
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.extraLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "pytorch-operator.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "pytorch-operator.fullname" .) }}
{{- end }}

{{- define "pytorch-operator.image" -}}
{{- $repository := required "image.repository: where do nodes pull the operator's image from?" .Values.image.repository }}
{{- if .Values.image.digest }}{{ printf "%s@%s" $repository .Values.image.digest }}
{{- else }}{{ printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- define "pytorch-operator.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* What the operator does to jobs and their children, and nothing else. */ -}}
{{- define "pytorch-operator.rules" -}}
- apiGroups: [kubeflow.org]
  resources: [pytorchjobs]
  verbs: [get, list, watch, delete] # delete: ttlSecondsAfterFinished
- apiGroups: [kubeflow.org]
  resources: [pytorchjobs/status]
  verbs: [patch]
- apiGroups: [kubeflow.org]
  resources: [pytorchjobs/finalizers]
  verbs: [update] # owner references that block deletion
- apiGroups: [""]
  resources: [pods, services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, create, patch, delete] # elasticPolicy.metrics
{{- if .Values.gangSchedulerName }}
- apiGroups:
  - {{ ternary "scheduling.volcano.sh" "scheduling.x-k8s.io" (eq .Values.gangSchedulerName "volcano") }}
  resources: [podgroups]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- end }}
