# A node that runs containers: `sh containers.sh DIR PROGRAMS CGROUP KUBECONFIG NAME`, as root.
#
# Its processes are in namespaces of their own, so that all of them, their mounts and their networks are gone with the first. Only
# the control groups stay, and are removed at the end. DIR holds containerd.toml and kubelet.yaml.
set -eu
dir=$1 programs=$2 cgroup=$3 kubeconfig=$4 name=$5
export dir programs kubeconfig name

hierarchies() {
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo /sys/fs/cgroup; else echo /sys/fs/cgroup/*/; fi
}

groups() {
  for hierarchy in $(hierarchies); do
    if [ -e "$hierarchy/$cgroup" ]; then echo "$hierarchy/$cgroup"; fi
  done
}

for hierarchy in $(hierarchies); do mkdir -p "$hierarchy/$cgroup"; done
# In cgroup v1 a new group may use no processor until it is told which.
cpusets=/sys/fs/cgroup/cpuset
if [ -e "$cpusets/cpuset.cpus" ]; then
  for file in cpuset.cpus cpuset.mems; do cat "$cpusets/$file" >"$cpusets/$cgroup/$file"; done
fi

# Single quotes: a shell inside the namespaces reads it.
inside='
set -eu
mount --make-rshared /
# What is at fixed places, such as the sockets of plugins and the logs of Pods.
for at in /run /var/lib /var/log; do mount -t tmpfs tmpfs "$at"; done
containerd --config="$dir/containerd.toml" &
socket="$dir/containerd.sock"
until ctr --address="$socket" version >/dev/null 2>&1; do sleep 0.1; done
for image in "$programs"/images/*.tar; do ctr --address="$socket" --namespace=k8s.io images import "$image"; done
exec "$programs/kubelet" --config="$dir/kubelet.yaml" --root-dir="$dir/kubelet" --kubeconfig="$kubeconfig" \
  --hostname-override="$name"
'
unshare --mount --pid --fork --kill-child --mount-proc sh -c "$inside" &
node=$!
end() {
  kill -KILL "$node" 2>/dev/null || true
  wait "$node" || true
  # A group is busy until the kernel has buried its last process.
  tries=0
  while left=$(groups) && [ -n "$left" ] && [ "$tries" -lt 150 ]; do
    find $left -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.2
    tries=$((tries + 1))
  done
}
trap 'end; exit 0' TERM
status=0
wait "$node" || status=$?
end
exit "$status"
