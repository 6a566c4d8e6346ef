#!/bin/bash
# Bring up a real multi-node Slurm cluster (slurmdbd + slurmctld + N slurmd) on ONE Debian 12 machine,
# no systemd.  Idempotent: running it again on a live cluster does nothing but check.
#   NODES=4 CPUS=8 MEM=6000 ./slurm-up.sh        (fake CPUs/memory are allowed)
#   CGROUP=auto|yes|no    memory/cpu confinement through cgroup v1 (auto: yes where it is writable)
# Everything it makes lies in $STATE, plus /etc/slurm/{slurm,slurmdbd,cgroup}.conf (see NOTE) and /run/munge.
set -euo pipefail
cd /   # what is started here outlives the folder that it was started from
STATE=${STATE:-/var/lib/slurm-test}
NODES=${NODES:-4}; CPUS=${CPUS:-8}; MEM=${MEM:-6000}
CGROUP=${CGROUP:-auto}
DBPORT=${DBPORT:-3399}
BASEPORT=${BASEPORT:-17000}
JOBUSER=${JOBUSER:-hpcuser}           # an unprivileged user with an account, for non-root jobs
say(){ echo "[slurm-up] $*"; }
alive(){ [ -s "$1" ] && grep -qsE "maria|slurm|munge" "/proc/$(cat "$1")/comm"; }   # pid files outlive reboots
wait_for(){ local t=$1; shift; local i; for ((i=0;i<t*10;i++)); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done; say "timed out: $*"; return 1; }

if [ -e /etc/slurm/slurm.conf ] && ! grep -q '^ClusterName=testcluster' /etc/slurm/slurm.conf; then
  say "this machine has a Slurm of its own (/etc/slurm/slurm.conf): left alone"; exit 3
fi

# ---- 1. packages
if ! command -v slurmctld >/dev/null || ! command -v slurmd >/dev/null || ! command -v slurmdbd >/dev/null \
   || ! command -v munged >/dev/null || ! command -v mariadbd >/dev/null; then
  say "installing packages"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq -o DPkg::Lock::Timeout=300 update
  apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends \
     slurmctld slurmd slurm-client slurmdbd slurm-wlm-basic-plugins munge mariadb-server >/dev/null
fi

mkdir -p "$STATE"/{log,run,ctld,db,spool}
chmod 755 "$STATE" "$STATE"/{log,run,spool}
chown slurm:slurm "$STATE/ctld" "$STATE/run" "$STATE/log"
chown mysql:mysql "$STATE/db"
id "$JOBUSER" >/dev/null 2>&1 || useradd -m -s /bin/bash "$JOBUSER"

# ---- 2. munge
install -d -o munge -g munge -m 755 /run/munge
install -d -o munge -g munge -m 700 /var/log/munge /var/lib/munge
if ! munge -n </dev/null >/dev/null 2>&1; then
  [ -s /etc/munge/munge.key ] || { mungekey -c; chown munge:munge /etc/munge/munge.key; }
  runuser -u munge -- /usr/sbin/munged
  wait_for 10 munge -n
fi

# ---- 3. mariadb (private data folder and port)
if ! alive "$STATE/run/mariadb.pid"; then
  [ -d "$STATE/db/mysql" ] || mariadb-install-db --no-defaults --user=mysql --datadir="$STATE/db" \
      --auth-root-authentication-method=socket --skip-test-db >"$STATE/log/mariadb-install.log" 2>&1
  install -d -o mysql -g mysql "$STATE/run/db"
  setsid mariadbd --no-defaults --user=mysql --datadir="$STATE/db" --port="$DBPORT" --bind-address=127.0.0.1 \
     --socket="$STATE/run/db/sock" --pid-file="$STATE/run/db/pid" --innodb-buffer-pool-size=256M \
     --innodb-log-file-size=64M --innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=2 \
     >"$STATE/log/mariadb.log" 2>&1 </dev/null &
  echo $! > "$STATE/run/mariadb.pid"
fi
SQL(){ mariadb --no-defaults --socket="$STATE/run/db/sock" -uroot "$@"; }
wait_for 30 SQL -e 'select 1'
SQL -e "create database if not exists slurm_acct_db;
        create user if not exists 'slurm'@'127.0.0.1' identified by 'slurm';
        create user if not exists 'slurm'@'localhost' identified by 'slurm';
        grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1'; grant all on slurm_acct_db.* to 'slurm'@'localhost';"

# ---- 4. configuration.  NOTE /etc/slurm and no SLURM_CONF: the jobstep plugin strips SLURM_CONF from srun's environment.
HOST=$(hostname -s)
getent hosts "$HOST" >/dev/null || echo "127.0.0.1 $HOST" >> /etc/hosts
if [ "$CGROUP" = auto ]; then
  CGROUP=no
  if [ -d /sys/fs/cgroup/memory ] && [ -d /sys/fs/cgroup/freezer ] && mkdir /sys/fs/cgroup/memory/probe.$$ 2>/dev/null; then
    rmdir /sys/fs/cgroup/memory/probe.$$; CGROUP=yes
  fi
fi
if [ "$CGROUP" = yes ]; then PT=proctrack/cgroup; TP=task/cgroup; JG=jobacct_gather/cgroup; JAP=""
else PT=proctrack/linuxproc; TP=task/none; JG=jobacct_gather/linux; JAP="JobAcctGatherParams=OverMemoryKill"; fi
mkdir -p /etc/slurm
cat > /etc/slurm/slurm.conf.new <<C
ClusterName=testcluster
SlurmctldHost=$HOST(127.0.0.1)
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
# cred_expire is also how long a requeued job must wait before it may start again (default 120 s)
AuthInfo=cred_expire=${CRED_EXPIRE:-20}
SlurmctldPort=6817
StateSaveLocation=$STATE/ctld
SlurmdSpoolDir=$STATE/spool/%n
SlurmctldPidFile=$STATE/run/slurmctld.pid
SlurmdPidFile=$STATE/run/slurmd.%n.pid
SlurmctldLogFile=$STATE/log/slurmctld.log
SlurmdLogFile=$STATE/log/slurmd.%n.log
SlurmctldDebug=info
SlurmdDebug=info
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
ProctrackType=$PT
TaskPlugin=$TP
SwitchType=switch/none
# quick reactions: this is a test cluster
SlurmctldTimeout=30
SlurmdTimeout=${SLURMD_TIMEOUT:-10}
InactiveLimit=0
KillWait=5
MinJobAge=300
OverTimeLimit=0
Waittime=0
EpilogMsgTime=0
CompleteWait=0
MaxJobCount=50000
MaxArraySize=10001
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=200000,bf_interval=2,bf_max_job_test=1000,batch_sched_delay=0,defer_batch
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=500
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
JobAcctGatherType=$JG
JobAcctGatherFrequency=task=${ACCTFREQ:-2}
$JAP
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=6819
AccountingStorageEnforce=${ENFORCE:-associations}
AccountingStoreFlags=job_comment,job_env,job_script
AccountingStorageTRES=gres/gpu
GresTypes=gpu
C
for ((k=1;k<=NODES;k++)); do
  echo "NodeName=n$k NodeHostname=$HOST NodeAddr=127.0.0.1 Port=$((BASEPORT+k)) CPUs=$CPUS CoresPerSocket=$CPUS Sockets=1 ThreadsPerCore=1 RealMemory=$MEM Gres=gpu:2 Feature=f$k,$([ $((k%2)) = 1 ] && echo odd || echo even) State=UNKNOWN"
done >> /etc/slurm/slurm.conf.new
cat >> /etc/slurm/slurm.conf.new <<C
PartitionName=main Nodes=n[1-$NODES] Default=YES MaxTime=1-00:00:00 DefaultTime=01:00:00 State=UP PriorityTier=10 PreemptMode=REQUEUE
PartitionName=short Nodes=n[1-$NODES] MaxTime=00:10:00 DefaultTime=00:05:00 State=UP PriorityTier=100
PartitionName=cancelq Nodes=n[1-$NODES] MaxTime=1-00:00:00 State=UP PriorityTier=5 PreemptMode=CANCEL
C
touch $STATE/gpu0 $STATE/gpu1
echo "Name=gpu File=$STATE/gpu[0-1]" > /etc/slurm/gres.conf     # fake GPUs: Count=2 without File= sets the node INVAL; plain files do
cat > /etc/slurm/cgroup.conf <<C
CgroupMountpoint=/sys/fs/cgroup
CgroupAutomount=no
CgroupPlugin=cgroup/v1
ConstrainRAMSpace=yes
ConstrainSwapSpace=no
ConstrainCores=no
ConstrainDevices=no
AllowedRAMSpace=100
C
cat > /etc/slurm/slurmdbd.conf <<C
AuthType=auth/munge
DbdHost=$HOST
DbdAddr=127.0.0.1
DbdPort=6819
SlurmUser=slurm
LogFile=$STATE/log/slurmdbd.log
PidFile=$STATE/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$DBPORT
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
C
chown slurm:slurm /etc/slurm/slurmdbd.conf; chmod 600 /etc/slurm/slurmdbd.conf
CHANGED=0
cmp -s /etc/slurm/slurm.conf.new /etc/slurm/slurm.conf || CHANGED=1
mv /etc/slurm/slurm.conf.new /etc/slurm/slurm.conf

# ---- 5. slurmdbd, then the cluster's association, then slurmctld, then the slurmds
if ! alive "$STATE/run/slurmdbd.pid"; then
  setsid slurmdbd -D >"$STATE/log/slurmdbd.out" 2>&1 </dev/null &
fi
wait_for 30 sacctmgr -nP list cluster
sacctmgr -nP list cluster format=cluster | grep -w testcluster >/dev/null || sacctmgr -i add cluster testcluster >/dev/null
for a in testcluster alt; do
  sacctmgr -nP list account format=account | grep -w $a >/dev/null || sacctmgr -i add account $a Cluster=testcluster Description=$a Organization=testcluster >/dev/null
  for u in root "$JOBUSER"; do
    sacctmgr -nP list assoc user=$u account=$a format=user | grep . >/dev/null || sacctmgr -i add user $u account=$a defaultaccount=testcluster >/dev/null
  done
done
if ! alive "$STATE/run/slurmctld.pid"; then
  setsid slurmctld -D >"$STATE/log/slurmctld.out" 2>&1 </dev/null &
  wait_for 30 scontrol ping
elif [ $CHANGED = 1 ]; then
  say "slurm.conf changed on a live cluster: run slurm-down.sh first for a change of nodes/ports"; scontrol reconfigure || true
fi
for ((k=1;k<=NODES;k++)); do
  mkdir -p "$STATE/spool/n$k"
  if ! alive "$STATE/run/slurmd.n$k.pid"; then
    setsid slurmd -D -N n$k >"$STATE/log/slurmd.n$k.out" 2>&1 </dev/null &
  fi
done
idle(){ [ "$(sinfo -h -N -p main -o '%T' | grep -cxE 'idle|mixed|allocated')" -ge "$NODES" ]; }
wait_for 30 idle || { scontrol update nodename="n[1-$NODES]" state=resume || true; wait_for 20 idle; }
say "up: $(sinfo -h -p main -o '%D nodes, %c cpus each, state %T') cgroup=$CGROUP"
