#!/bin/bash
# pause.sh FILE.tar: packs the sandbox's "pause" program as an image archive for containerd, once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../tools/common.sh"
[ ! -e "$1" ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/layer" "$work/image" "$(dirname "$1")"
cc -O2 -static -s -o "$work/layer/pause" "$here/pause.c" || Die "pause.c can't be compiled; run tools/deps.sh"
chmod 755 "$work/layer" "$work/layer/pause"
tar -C "$work/layer" --owner=0 --group=0 --numeric-owner --mtime=@0 -cf "$work/image/layer.tar" .
layer=$(sha256sum "$work/image/layer.tar" | cut -d' ' -f1)
cat >"$work/image/config.json" <<END
{"architecture": "$(dpkg --print-architecture)", "os": "linux", "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$layer"]}}
END
echo '[{"Config": "config.json", "RepoTags": ["localhost/pause:1"], "Layers": ["layer.tar"]}]' >"$work/image/manifest.json"
tar -C "$work/image" -cf "$1.new" manifest.json config.json layer.tar
mv "$1.new" "$1"
