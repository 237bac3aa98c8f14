# Sourced by the project's scripts: where things are kept, how they report.
# Everything that is downloaded or built outside the tree lives under one folder, $PTO_CACHE.
PTO_CACHE=${PTO_CACHE:-$HOME/.cache/pytorch-operator}
PTO_BIN=$PTO_CACHE/bin
PTO_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PTO_CACHE PTO_BIN PTO_ROOT

Die() {
  echo "error: $*" >&2
  exit 1
}

# Sets GO to a Go compiler that is new enough for Kubernetes, and its caches to $PTO_CACHE/go.
# tools/deps.sh puts one into $PTO_CACHE/venv where the machine has none.
FindGo() {
  local candidate version
  for candidate in "$(command -v go || true)" /usr/local/go/bin/go \
    "$PTO_CACHE"/venv/lib/python3*/site-packages/go/bin/go; do
    [ -n "$candidate" ] && [ -x "$candidate" ] || continue
    version=$(GOTOOLCHAIN=local "$candidate" env GOVERSION 2>/dev/null) || continue
    version=${version#go1.}
    version=${version%%[!0-9]*}
    if [ "${version:-0}" -ge 26 ]; then
      GO=$candidate
      export GO GOTOOLCHAIN=local GOMODCACHE=$PTO_CACHE/go/mod GOCACHE=$PTO_CACHE/go/build
      export GOFLAGS=-modcacherw
      return 0
    fi
  done
  Die "Go 1.26 or later is needed to build Kubernetes; run tools/deps.sh, which installs it"
}

# Whether overlay mounts work with a folder as their upper layer (not so inside many containers).
OverlayWorks() {  # existing folder
  local try works=1
  try=$(mktemp -d "$1/overlay-try.XXXXXX")
  mkdir "$try"/{lower,upper,work,merged}
  if mount -t overlay overlay -o "lowerdir=$try/lower,upperdir=$try/upper,workdir=$try/work" \
    "$try/merged" 2>/dev/null; then
    umount "$try/merged" && works=0
  fi
  rm -rf --one-file-system "$try"
  return $works
}
