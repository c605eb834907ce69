package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v2store"
	"go.etcd.io/etcd/server/v3/etcdserver/cindex"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// restore makes a data directory of a snapshot, as `etcdutl snapshot restore`
// does, with the same calls of etcd's own packages: etcdutl is no module that Go's
// proxy serves.
type restore struct {
	snapshot, dataDir, name, peerURL string
	log                              *zap.Logger
}

func newRestoreCommand() *cobra.Command {
	r := &restore{log: zap.NewNop()}
	command := &cobra.Command{
		Use:          "etcd-restore",
		Short:        "Make the data directory of a single etcd member of a snapshot",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := r.run(); err != nil {
				return fmt.Errorf("failed to restore %s: %w", r.snapshot, err)
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&r.snapshot, "snapshot", "", "file that etcd's snapshot API has filled")
	flags.StringVar(&r.dataDir, "data-dir", "", "directory to make")
	flags.StringVar(&r.name, "name", "default", "name of the member")
	flags.StringVar(&r.peerURL, "peer-url", "", "peer URL of the member")
	return command
}

func (r *restore) path(parts ...string) string {
	return filepath.Join(append([]string{r.dataDir, "member"}, parts...)...)
}

func (r *restore) run() error {
	urls, err := types.NewURLsMap(r.name + "=" + r.peerURL)
	if err != nil {
		return err
	}
	cluster, err := membership.NewClusterFromURLsMap(r.log, "etcd-cluster", urls)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.path("snap"), 0o700); err != nil {
		return err
	}
	if err := r.saveDB(); err != nil {
		return err
	}
	store := backend.NewDefaultBackend(r.log, r.path("snap", "db"))
	defer store.Close()
	// The member that was is no member of what is restored.
	if err := schema.NewMembershipBackend(r.log, store).TrimMembershipFromBackend(); err != nil {
		return err
	}
	cluster.SetStore(v2store.New(etcdserver.StoreClusterPrefix, etcdserver.StoreKeysPrefix))
	cluster.SetBackend(schema.NewMembershipBackend(r.log, store))
	for _, member := range cluster.Members() {
		cluster.AddMember(member, membership.ApplyBoth)
	}
	state, err := r.saveLog(cluster)
	if err != nil {
		return err
	}
	cindex.UpdateConsistentIndexForce(store.BatchTx(), state.Commit, state.Term)
	store.ForceCommit()
	return nil
}

// saveDB copies the store, without the digest that ends the snapshot.
func (r *restore) saveDB() error {
	data, err := os.ReadFile(r.snapshot)
	if err != nil {
		return err
	}
	at := len(data) - sha256.Size
	if at < 0 || at%512 != 0 {
		return errors.New("it has no digest at its end: was it taken to its end?")
	}
	if digest := sha256.Sum256(data[:at]); string(digest[:]) != string(data[at:]) {
		return errors.New("its digest is another: it was cut or changed")
	}
	file, err := os.OpenFile(r.path("snap", "db"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.Write(data[:at]); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

// saveLog begins a log whose first entry is the one member.
func (r *restore) saveLog(cluster *membership.RaftCluster) (raftpb.HardState, error) {
	member := cluster.MemberByName(r.name)
	metadata, err := (&etcdserverpb.Metadata{NodeID: uint64(member.ID), ClusterID: uint64(cluster.ID())}).Marshal()
	if err != nil {
		return raftpb.HardState{}, err
	}
	entries, err := wal.Create(r.log, r.path("wal"), metadata)
	if err != nil {
		return raftpb.HardState{}, err
	}
	defer entries.Close()
	described, err := json.Marshal(member)
	if err != nil {
		return raftpb.HardState{}, err
	}
	node := uint64(member.ID)
	added, err := (&raftpb.ConfChange{Type: raftpb.ConfChangeAddNode, NodeID: node, Context: described}).Marshal()
	if err != nil {
		return raftpb.HardState{}, err
	}
	state := raftpb.HardState{Term: 1, Vote: node, Commit: 1}
	first := raftpb.Entry{Type: raftpb.EntryConfChange, Term: 1, Index: 1, Data: added}
	if err := entries.Save(state, []raftpb.Entry{first}); err != nil {
		return raftpb.HardState{}, err
	}
	voters := raftpb.ConfState{Voters: []uint64{node}}
	err = snap.New(r.log, r.path("snap")).SaveSnap(raftpb.Snapshot{
		Data:     etcdserver.GetMembershipInfoInV2Format(r.log, cluster),
		Metadata: raftpb.SnapshotMetadata{Index: 1, Term: 1, ConfState: voters},
	})
	if err != nil {
		return raftpb.HardState{}, err
	}
	return state, entries.SaveSnapshot(walpb.Snapshot{Index: 1, Term: 1, ConfState: &voters})
}
