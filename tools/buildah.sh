# Sourced: buildah with a store of its own under $PTO_CACHE, so that it neither needs nor touches the
# machine's images.
Buildah() {
  buildah "${BUILDAH_STORE[@]}" "$@"
}

mkdir -p "$PTO_CACHE/images"
if [ ! -e "$PTO_CACHE/images/driver" ]; then
  if OverlayWorks "$PTO_CACHE/images"; then echo overlay; else echo vfs; fi >"$PTO_CACHE/images/driver"
fi
BUILDAH_STORE=(--root "$PTO_CACHE/images/store" --runroot /run/pytorch-operator-images
  --storage-driver "$(cat "$PTO_CACHE/images/driver")")
