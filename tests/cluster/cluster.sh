#!/bin/bash
# A real Kubernetes on this machine, its state and logs in one folder.
#   cluster.sh up DIR      brings it up, or repairs it: only dead or changed parts are started.
#                          The administrator's kubeconfig is DIR/admin.kubeconfig.
#   cluster.sh down DIR    ends every part, unmounts, deletes DIR
#   cluster.sh status DIR  one line a part; exit 1 when one is dead
#   cluster.sh node        the DIR of this machine's running node cluster; exit 1 when there is none
#   cluster.sh ctr …       containerd's own command for that node, e.g. "images import FILE.tar"
# Variables for "up":
#   NODE=1                 also scheduler, kubelet, kube-proxy, containerd, CoreDNS and a pod network:
#                          pods really run. One such cluster a machine, as root.
#   CONTROLLER_MANAGER=0   leaves out the controller manager (and the service account admission)
#   APISERVER_ARGS="…"     more arguments for kube-apiserver, e.g. --emulated-version=1.33
# Without NODE the cluster is etcd + API server + controller manager on loopback, on ports that are
# free: any number may run at once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../tools/common.sh"
export PATH=$PATH:/usr/sbin:/sbin  # Debian's ordinary user does not have them

NODE_IP=10.244.0.1        # of the pod bridge: API server, CoreDNS and kubelet listen there
SERVICE_IP=10.96.0.1      # the "kubernetes" Service
NODE_NAME=node1
NODE_RUN=/run/pytorch-operator-node  # containerd's sockets (their paths must be short) and the claim

. "$here/parts.sh"
. "$here/pki.sh"
. "$here/node.sh"

Usage() {
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2
  exit 2
}

PortFree() { [ -z "$(ss -Htln "sport = :$1")" ]; }

# Ports are chosen below the kernel's range for outgoing connections, at random so that clusters that
# start at the same moment hardly meet, and kept in $W/ports.
ChoosePorts() {
  local name port
  : >"$W/ports.new"
  for name in ETCD_PORT ETCD_PEER_PORT API_PORT CONTROLLER_PORT; do
    port=0
    [ $name != API_PORT ] || [ "$NODE" = 0 ] || ! PortFree 6443 || port=6443
    while [ $port = 0 ] || { [ $port != 6443 ] && ! PortFree $port; }; do
      port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    done
    echo "$name=$port" >>"$W/ports.new"
  done
  mv "$W/ports.new" "$W/ports"
}

ControlPlane() {
  local api=$NODE_IP reach
  [ "$NODE" = 1 ] || api=127.0.0.1
  Pki
  [ -e "$W/ports" ] || ChoosePorts
  . "$W/ports"
  Kubeconfigs "https://$api:$API_PORT"

  local etcd=http://127.0.0.1:$ETCD_PORT peer=http://127.0.0.1:$ETCD_PEER_PORT
  Part etcd - etcd --data-dir "$W/etcd" --unsafe-no-fsync --listen-client-urls "$etcd" \
    --advertise-client-urls "$etcd" --listen-peer-urls "$peer" \
    --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer"

  if [ "$NODE" = 1 ]; then
    reach="--advertise-address=$api --kubelet-preferred-address-types=InternalIP
      --kubelet-client-certificate=$W/pki/admin.crt --kubelet-client-key=$W/pki/admin.key
      --kubelet-certificate-authority=$W/pki/ca.crt
      --enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement"
  else
    reach="--endpoint-reconciler-type=none"
  fi
  [ "$CONTROLLER_MANAGER" = 1 ] || reach+=" --disable-admission-plugins=ServiceAccount"
  # shellcheck disable=SC2086
  Part apiserver - "$PTO_BIN/kube-apiserver" --etcd-servers="$etcd" --secure-port="$API_PORT" \
    --bind-address="$api" --tls-cert-file="$W/pki/apiserver.crt" \
    --tls-private-key-file="$W/pki/apiserver.key" --client-ca-file="$W/pki/ca.crt" \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file="$W/pki/sa.pub" --service-account-signing-key-file="$W/pki/sa.key" \
    --service-cluster-ip-range=10.96.0.0/16 --authorization-mode=Node,RBAC \
    --allow-privileged=true $reach $APISERVER_ARGS
  export KUBECONFIG=$W/admin.kubeconfig
  WaitFor apiserver 180 "the API server being ready" "$PTO_BIN/kubectl" get --raw /readyz

  if [ "$CONTROLLER_MANAGER" = 1 ]; then
    Part controller-manager - "$PTO_BIN/kube-controller-manager" --secure-port="$CONTROLLER_PORT" \
      --bind-address=127.0.0.1 --kubeconfig="$W/controller-manager.kubeconfig" \
      --service-account-private-key-file="$W/pki/sa.key" --root-ca-file="$W/pki/ca.crt" \
      --use-service-account-credentials=true --cluster-signing-cert-file="$W/pki/ca.crt" \
      --cluster-signing-key-file="$W/pki/ca.key" --leader-elect=false
  fi
}

Up() {
  NODE=${NODE:-0} CONTROLLER_MANAGER=${CONTROLLER_MANAGER:-1} APISERVER_ARGS=${APISERVER_ARGS:-}
  local programs=(kube-apiserver kubectl kube-controller-manager) program
  [ "$NODE" = 0 ] || programs=()  # all of them
  "$here/build.sh" "${programs[@]}"
  for program in etcd openssl ss; do
    command -v $program >/dev/null || Die "$program is missing; run tools/deps.sh"
  done
  mkdir -p "$W"/{run,log}
  exec 9>"$W/run/.lock"
  flock 9  # two "up" of one folder: the second finds the work done
  if [ "$NODE" = 1 ]; then
    NodeClaim
    NodeNetwork
  fi
  ControlPlane
  [ "$NODE" = 0 ] || NodeParts
  if [ "$CONTROLLER_MANAGER" = 1 ]; then
    WaitFor controller-manager 120 "the default service account" \
      "$PTO_BIN/kubectl" get serviceaccount default
  fi
  echo "KUBECONFIG=$W/admin.kubeconfig"
}

Down() {
  [ -d "$W" ] || return 0
  [ -d "$W/run" ] || Die "$W is not the folder of a cluster; nothing was changed"
  [ ! -e "$W/node" ] || NodeDown
  Stop controller-manager apiserver etcd
  rm -rf --one-file-system "$W"
}

Status() {
  local file name dead=0
  for file in "$W"/run/*.pid; do
    [ -e "$file" ] || Die "no cluster in $W"
    name=$(basename "$file" .pid)
    if Alive "$name"; then echo "$name running (pid $(cat "$file"))"; else echo "$name dead"; dead=1; fi
  done
  return $dead
}

[ $# -ge 1 ] || Usage
case $1 in
  node) NodeRunning ;;
  ctr) shift && Ctr "$@" ;;
  up | down | status)
    [ $# = 2 ] || Usage
    W=$(realpath -m "$2")
    case $1 in up) Up ;; down) Down ;; status) Status ;; esac
    ;;
  *) Usage ;;
esac
