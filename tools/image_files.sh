#!/bin/bash
# image_files.sh operator|trainer BINARIES OUT: lays out in OUT the files of an image, from the
# programs in the folder BINARIES that were built on this Debian 12 system.
# The Dockerfiles call it in their build stage; the demo calls it on the host ("prebuilt" target).
set -euo pipefail
. "$(dirname "$0")/common.sh"
[ $# = 3 ] || Die "usage: image_files.sh operator|trainer BINARIES OUT"
what=$1 binaries=$2 out=$3
rm -rf "$out"
mkdir -p "$out"

# Shared objects that a program loads, by their real names, one a line.
SharedObjects() {
  local list
  list=$(ldd "$1") || Die "$1 is not a dynamic program of this system"
  ! grep 'not found' <<<"$list" >&2 || Die "$1 needs shared objects that are missing here (above)"
  sed -n 's/^.*=> \(\/[^ ]*\).*$/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*$/\1/p' <<<"$list"
}

# Debian's licence note of the package that a file belongs to.
Licence() {
  local package notice
  package=$(dpkg-query -S "$(realpath "$1")" "$1" 2>/dev/null | head -n 1 | cut -d: -f1) || true
  [ -n "$package" ] || package=$(dpkg-query -S "/lib/$(uname -m)-linux-gnu/$(basename "$(realpath "$1")")" 2>/dev/null | head -n 1 | cut -d: -f1) || true
  notice=/usr/share/doc/$package/copyright
  [ -n "$package" ] && [ -e "$notice" ] || Die "no licence note for $1 (package '$package')"
  install -Dm 644 "$notice" "$out$notice"
}

case $what in
  operator)
    program=$binaries/pytorch-operator
    [ -x "$program" ] || Die "$program is missing; build it first: make build"
    install -Dm 755 "$program" "$out/usr/local/bin/pytorch-operator"
    while read -r object; do
      # The loader's path stands in the program; all else is searched in the system's folders.
      case $object in
        /lib64/*) install -Dm 755 "$(realpath "$object")" "$out$object" ;;
        *) install -Dm 644 "$(realpath "$object")" "$out/usr/lib/$(uname -m)-linux-gnu/$(basename "$object")" ;;
      esac
      Licence "$object"
    done < <(SharedObjects "$program")
    mkdir -p "$out/lib"
    ln -s "../usr/lib/$(uname -m)-linux-gnu" "$out/lib/$(uname -m)-linux-gnu"
    mkdir -p "$out/etc"
    echo 'operator:x:65532:65532::/:/nonexistent' >"$out/etc/passwd"
    install -Dm 644 "$PTO_ROOT/LICENSE" "$out/usr/share/doc/pytorch-operator/LICENSE"
    # The notes refer to the licences' full texts there.
    cp -rL /usr/share/common-licenses "$out/usr/share/"
    ;;
  trainer)
    program=$binaries/mnist-trainer
    [ -x "$program" ] || Die "$program is missing; build it first: make build"
    install -Dm 755 "$program" "$out/usr/local/bin/mnist-trainer"
    libtorch=$(echo "$PTO_CACHE"/libtorch/*/complete)
    libtorch=$(dirname "${libtorch##* }")
    [ -d "$libtorch/lib" ] || Die "LibTorch is missing; run tools/libtorch.sh"
    # Hard links where the file system allows: half a gigabyte need not be copied for each build.
    mkdir -p "$out/usr/local/lib" "$out/usr/share/doc/libtorch" "$out/datasets"
    cp -lL "$libtorch"/lib/* "$out/usr/local/lib/" 2>/dev/null || cp -L "$libtorch"/lib/* "$out/usr/local/lib/"
    cp -r "$libtorch"/licenses/. "$out/usr/share/doc/libtorch/"
    [ -e "$PTO_CACHE/datasets/mnist/LICENSE" ] || Die "the data sets are missing; run tools/datasets.sh"
    cp -r "$PTO_CACHE"/datasets/{mnist,fashion-mnist} "$out/datasets/"
    install -Dm 644 "$PTO_ROOT/LICENSE" "$out/usr/share/doc/mnist-trainer/LICENSE"
    ;;
  *) Die "no image called '$what'; there are operator and trainer" ;;
esac
