# Sourced by cluster.sh: the certificate authority of a cluster, its certificates and kubeconfigs.

Certificate() {  # name subject extensions
  openssl req -newkey rsa:2048 -nodes -keyout "$W/pki/$1.key" -out "$W/pki/$1.csr" -subj "$2" 2>/dev/null
  openssl x509 -req -in "$W/pki/$1.csr" -CA "$W/pki/ca.crt" -CAkey "$W/pki/ca.key" -CAcreateserial \
    -days 3650 -out "$W/pki/$1.crt" -extfile <(printf '%b' "$3") 2>/dev/null
  rm "$W/pki/$1.csr"
}

# Keys and certificates of all parts; made once, complete or not at all.
Pki() {
  [ ! -e "$W/pki/complete" ] || return 0
  rm -rf "$W/pki"
  (umask 077 && mkdir -p "$W/pki")
  openssl genrsa -out "$W/pki/sa.key" 2048 2>/dev/null
  openssl rsa -in "$W/pki/sa.key" -pubout -out "$W/pki/sa.pub" 2>/dev/null
  openssl req -x509 -newkey rsa:2048 -nodes -keyout "$W/pki/ca.key" -out "$W/pki/ca.crt" \
    -days 3650 -subj /CN=pytorch-operator-test-ca 2>/dev/null
  local names=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc
  Certificate apiserver /CN=kube-apiserver \
    "subjectAltName=$names,IP:127.0.0.1,IP:$SERVICE_IP,IP:$NODE_IP"
  Certificate admin /O=system:masters/CN=admin extendedKeyUsage=clientAuth
  Certificate controller-manager /CN=system:kube-controller-manager extendedKeyUsage=clientAuth
  Certificate scheduler /CN=system:kube-scheduler extendedKeyUsage=clientAuth
  Certificate proxy /CN=system:kube-proxy extendedKeyUsage=clientAuth
  Certificate kubelet "/O=system:nodes/CN=system:node:$NODE_NAME" \
    "extendedKeyUsage=clientAuth,serverAuth\nsubjectAltName=DNS:$NODE_NAME,IP:$NODE_IP"
  touch "$W/pki/complete"
}

# admin.kubeconfig carries its certificates inside, so that it can be copied elsewhere.
Kubeconfigs() {  # API server's URL
  local user
  for user in admin controller-manager scheduler proxy kubelet; do
    (umask 077 && cat >"$W/$user.kubeconfig.new" <<END
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: $1
    certificate-authority-data: $(base64 -w0 "$W/pki/ca.crt")
users:
- name: $user
  user:
    client-certificate-data: $(base64 -w0 "$W/pki/$user.crt")
    client-key-data: $(base64 -w0 "$W/pki/$user.key")
contexts:
- name: local
  context: {cluster: local, user: $user}
current-context: local
END
    )
    mv "$W/$user.kubeconfig.new" "$W/$user.kubeconfig"
  done
}
