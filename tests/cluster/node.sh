# Sourced by cluster.sh: what makes pods really run on this machine. Needs root.

NodeParts_=(proxy coredns kubelet scheduler)

# Prints the folder of the node cluster that holds this machine, if its kubelet or API server lives.
NodeRunning() {
  W=$(cat "$NODE_RUN/claim" 2>/dev/null) || return 1
  Alive apiserver || Alive kubelet || return 1
  echo "$W"
}

NodeClaim() {
  [ "$(id -u)" = 0 ] || Die "a cluster that runs pods needs root (containers, network, mounts); become root and try again"
  local other program
  for program in containerd runc ctr iptables conntrack ip mount; do
    command -v $program >/dev/null || Die "$program is missing; run tools/deps.sh"
  done
  [ -x /usr/lib/cni/bridge ] || Die "/usr/lib/cni/bridge is missing; run tools/deps.sh (package containernetworking-plugins)"
  mkdir -p "$NODE_RUN"
  if other=$(NodeRunning) && [ "$other" != "$W" ]; then
    Die "this machine already runs a node cluster in $other, and there can be only one; take it down with: $0 down $other"
  fi
  echo "$W" >"$NODE_RUN/claim"
  touch "$W/node"
}

# The pod bridge has its address before the API server starts, which listens on it. Pods of the same
# node talk over the bridge; whatever leaves it is masqueraded.
NodeNetwork() {
  ip link show cni0 >/dev/null 2>&1 || ip link add cni0 type bridge
  ip -4 addr show dev cni0 | grep -q "inet $NODE_IP/24" || ip addr add $NODE_IP/24 dev cni0
  ip link set cni0 up
  [ "$(cat /proc/sys/net/ipv4/ip_forward)" = 1 ] || echo 1 >/proc/sys/net/ipv4/ip_forward ||
    Die "IP forwarding is off and can't be switched on here (net.ipv4.ip_forward)"
  # A host with Docker drops what is forwarded unless a rule allows it.
  local direction
  for direction in -i -o; do
    iptables -w -C FORWARD $direction cni0 -j ACCEPT 2>/dev/null ||
      iptables -w -I FORWARD $direction cni0 -j ACCEPT || true
  done
}

NodeConfiguration() {
  local snapshotter=native
  mkdir -p "$W"/{containerd,cni,kubelet,pod-logs}
  ! OverlayWorks "$W/containerd" || snapshotter=overlayfs
  # restrict_oom_score_adj: without CAP_SYS_RESOURCE runc fails to lower it.
  cat >"$W/containerd.toml" <<END
version = 2
root = "$W/containerd"
state = "$NODE_RUN/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "$NODE_RUN/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$W/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$snapshotter"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
END
  cat >"$W/cni/10-bridge.conflist" <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$W/cni/addresses",
            "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
  # The cgroup settings work with cgroup v1 and v2, with and without systemd; eviction is all but off,
  # since a developer's nearly full disk is no reason to evict.
  cat >"$W/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_IP
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $W/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $W/pki/kubelet.crt
tlsPrivateKeyFile: $W/pki/kubelet.key
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
failCgroupV1: false
clusterDNS: ["$NODE_IP"]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://$NODE_RUN/containerd.sock
podLogsDir: $W/pod-logs
volumePluginDir: $W/kubelet/volume-plugins
resolvConf: ""
evictionHard: {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%", "nodefs.inodesFree": "1%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
syncFrequency: 10s
END
  local forward=
  ! grep -qs '^nameserver' /etc/resolv.conf || forward="forward . /etc/resolv.conf"
  cat >"$W/Corefile" <<END
.:53 {
  bind $NODE_IP
  errors
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    kubeconfig $W/admin.kubeconfig local
    pods insecure
    ttl 5
  }
  cache 5
  $forward
}
END
}

Ctr() { ctr --address "$NODE_RUN/containerd.sock" --namespace k8s.io "$@"; }

NodeParts() {
  NodeConfiguration
  Part containerd "$W/containerd.toml" containerd --config "$W/containerd.toml"
  WaitFor containerd 60 "containerd answering" Ctr version
  if ! Ctr images ls -q | grep -qx localhost/pause:1; then
    "$here/pause.sh" "$PTO_CACHE/images/pause.tar"
    Ctr images import "$PTO_CACHE/images/pause.tar" >/dev/null
  fi
  Part scheduler - "$PTO_BIN/kube-scheduler" --kubeconfig="$W/scheduler.kubeconfig" \
    --bind-address=127.0.0.1 --leader-elect=false
  # masquerade-all: Service addresses work between pods of the one bridge without br_netfilter. The
  # host's connection tracking limits stay as they are.
  Part proxy - "$PTO_BIN/kube-proxy" --kubeconfig="$W/proxy.kubeconfig" --proxy-mode=iptables \
    --cluster-cidr=10.244.0.0/24 --masquerade-all=true --hostname-override=$NODE_NAME \
    --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0s \
    --conntrack-tcp-timeout-close-wait=0s
  Part coredns "$W/Corefile" "$PTO_BIN/coredns" -conf "$W/Corefile"
  Part kubelet "$W/kubelet.yaml" "$PTO_BIN/kubelet" --config="$W/kubelet.yaml" \
    --kubeconfig="$W/kubelet.kubeconfig" --hostname-override=$NODE_NAME \
    --root-dir="$W/kubelet" --node-ip=$NODE_IP
  WaitFor kubelet 120 "the node being Ready" NodeReady
  local part
  for part in "${NodeParts_[@]}"; do
    Alive "$part" || { tail -n 15 "$W/log/$part.log" >&2; Die "$part ended by itself; its log is $W/log/$part.log"; }
  done
}

# The kubelet itself answers and the node is Ready; the word in the API alone may be an old one.
NodeReady() {
  [ "$("$PTO_BIN/kubectl" get --raw "/api/v1/nodes/$NODE_NAME/proxy/healthz")" = ok ] &&
    "$PTO_BIN/kubectl" get node $NODE_NAME --no-headers | grep -qw Ready
}

# Pods end with their processes; then nothing holds the mounts.
NodeDown() {
  Stop kubelet
  if Alive containerd; then
    local id
    for id in $(Ctr tasks ls -q 2>/dev/null); do
      Ctr tasks kill --signal KILL "$id" >/dev/null 2>&1 || true
    done
    for id in $(Ctr tasks ls -q 2>/dev/null); do
      timeout 20 ctr --address "$NODE_RUN/containerd.sock" --namespace k8s.io tasks rm --force "$id" >/dev/null 2>&1 || true
    done
  fi
  Stop proxy coredns scheduler containerd
  # A shim outlives its containerd; only those of our own socket are ended.
  local cmdline
  for cmdline in /proc/[0-9]*/cmdline; do
    if { tr '\0' ' ' <"$cmdline"; } 2>/dev/null | grep -q "containerd-shim.*-address $NODE_RUN/containerd.sock"; then
      kill -9 "$(basename "$(dirname "$cmdline")")" 2>/dev/null || true
    fi
  done
  local path
  awk '{print $2}' /proc/mounts | tac | while read -r path; do
    case $(printf '%b' "$path") in
      "$W"/* | "$NODE_RUN"/*) umount -l "$(printf '%b' "$path")" || true ;;
    esac
  done
  "$PTO_BIN/kube-proxy" --cleanup >/dev/null 2>&1 || true
  local direction chain rule
  for direction in -i -o; do
    iptables -w -D FORWARD $direction cni0 -j ACCEPT 2>/dev/null || true
  done
  # The masquerading of pods whose sandbox did not end by the kubelet's hand.
  for chain in $(iptables-save -t nat 2>/dev/null |
    sed -n 's/^-A POSTROUTING .*name: \\"pods\\".* -j \(CNI-[0-9a-f]*\)$/\1/p'); do
    rule=$(iptables-save -t nat | grep -- "^-A POSTROUTING .* -j $chain\$" | sed 's/^-A/-D/')
    eval "iptables -w -t nat $rule" && iptables -w -t nat -F "$chain" && iptables -w -t nat -X "$chain"
  done
  # What the kubelet leaves in iptables.
  for chain in INPUT OUTPUT; do
    iptables -w -D $chain -j KUBE-FIREWALL 2>/dev/null || true
  done
  for chain in filter:KUBE-FIREWALL filter:KUBE-KUBELET-CANARY nat:KUBE-KUBELET-CANARY \
    mangle:KUBE-KUBELET-CANARY mangle:KUBE-IPTABLES-HINT; do
    { iptables -w -t "${chain%:*}" -F "${chain#*:}" && iptables -w -t "${chain%:*}" -X "${chain#*:}"; } 2>/dev/null || true
  done
  ip link del cni0 2>/dev/null || true
  rm -rf --one-file-system "$NODE_RUN"
}
