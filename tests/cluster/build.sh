#!/bin/bash
# Builds the programs of a real Kubernetes from Go modules into $PTO_CACHE/bin.
#   build.sh [NAME…]    default: what a one-node cluster needs; "helm" only when asked for
# A program is built again only when the go.mod or go.sum that pins it, or the Go compiler, changed.
# The go.sum files are committed, so no checksum database is asked.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../tools/common.sh"

# In the order in which others wait for them: a control plane first.
node_programs=(kube-apiserver kubectl kube-controller-manager kube-scheduler kubelet kube-proxy coredns)
names=("$@")
[ ${#names[@]} -gt 0 ] || names=("${node_programs[@]}")

package_of() {  # program -> "module-folder package"
  case $1 in
    kube-apiserver | kube-controller-manager | kube-scheduler | kubelet | kube-proxy | kubectl)
      echo "kubernetes k8s.io/kubernetes/cmd/$1" ;;
    coredns) echo "coredns github.com/coredns/coredns" ;;
    helm) echo "helm helm.sh/helm/v3/cmd/helm" ;;
    *) Die "no recipe for a program called '$1'; known: ${node_programs[*]} helm" ;;
  esac
}

# Link flags of a module folder; Kubernetes takes its own version from there.
link_flags() {
  local flags="-s -w" version pkg=k8s.io/component-base/version
  if [ "$1" = kubernetes ]; then
    version=$(awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ {print $2} $2 == "k8s.io/kubernetes" && $3 ~ /^v/ {print $3}' "$here/kubernetes/go.mod" | head -n 1)
    IFS=. read -r major minor _ <<<"${version#v}"
    flags+=" -X $pkg.gitVersion=$version -X $pkg.gitMajor=$major -X $pkg.gitMinor=$minor"
    flags+=" -X $pkg.gitTreeState=clean -X $pkg.buildDate=1970-01-01T00:00:00Z"
  fi
  echo "$flags"
}

stamp_of() {  # module-folder -> digest of all that decides the program
  { cat "$here/$1/go.mod" "$here/$1/go.sum"; link_flags "$1"; } | sha256sum | cut -c1-32
}

mkdir -p "$PTO_BIN"
exec 9>"$PTO_BIN/.lock"
flock 9  # one build at a time; a second caller finds the work done
for name in "${names[@]}"; do
  read -r folder package <<<"$(package_of "$name")"
  stamp=$(stamp_of "$folder")
  if [ -x "$PTO_BIN/$name" ] && [ "$(cat "$PTO_BIN/.$name.stamp" 2>/dev/null)" = "$stamp" ]; then
    continue
  fi
  FindGo
  start=$SECONDS
  (
    cd "$here/$folder"
    CGO_ENABLED=0 "$GO" build -mod=readonly -trimpath -ldflags "$(link_flags "$folder")" \
      -o "$PTO_BIN/.$name.new" "$package"
  ) || Die "building $name from Go modules failed (see above). Is the Go module proxy reachable (GOPROXY=$("$GO" env GOPROXY))?"
  mv -f "$PTO_BIN/.$name.new" "$PTO_BIN/$name"
  echo "$stamp" >"$PTO_BIN/.$name.stamp"
  echo "built $name in $((SECONDS - start)) s"
done
