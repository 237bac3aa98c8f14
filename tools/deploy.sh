#!/bin/bash
# deploy.sh IMAGE: installs the CRD and the operator, with its own service account and RBAC, into the
# cluster of $KUBECONFIG, and waits until it is ready. IMAGE is the operator's, with a tag.
set -euo pipefail
. "$(dirname "$0")/common.sh"
[ $# = 1 ] || Die "usage: deploy.sh IMAGE"
kubectl=${KUBECTL:-$PTO_BIN/kubectl}
namespace=pytorch-operator

"$kubectl" apply -f "$PTO_ROOT/crds/kubeflow.org_pytorchjobs.yaml"
# Served at last, not only stored ("kubectl wait" fails while the CRD has no status at all).
until=$((SECONDS + 60))
until "$kubectl" get pytorchjobs --all-namespaces >/dev/null 2>&1; do
  [ $SECONDS -lt $until ] || Die "the API server does not serve pytorchjobs 60 s after the CRD was applied; look at: kubectl describe crd pytorchjobs.kubeflow.org"
  sleep 0.5
done

# The manifests of deploy/kustomize, with this image instead of the plain name.
overlay=$PTO_ROOT/build/deploy
mkdir -p "$overlay"
cat >"$overlay/kustomization.yaml" <<END
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- ../../deploy/kustomize
images:
- name: pytorch-operator
  newName: ${1%:*}
  newTag: ${1##*:}
END
"$kubectl" apply -k "$overlay"
if ! "$kubectl" -n $namespace rollout status deployment/pytorch-operator --timeout=120s; then
  "$kubectl" -n $namespace describe pods | tail -n 25 >&2
  "$kubectl" -n $namespace logs deployment/pytorch-operator --tail=20 >&2 || true
  Die "the operator did not become ready; what its pod and its log say is above"
fi
