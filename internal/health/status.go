package health

import (
	"fmt"
	"time"
)

// A Status is the state of the running server. It is what `docent status --json` prints: fields are added, and keep their
// names.
type Status struct {
	Version string    `json:"version"`
	Commit  string    `json:"commit,omitempty"`
	PID     int       `json:"pid"`
	Data    string    `json:"data"`
	URL     string    `json:"url"`
	Started time.Time `json:"startedAt"`
	Uptime  float64   `json:"uptimeSeconds"`
	Crashed bool      `json:"crashed"` // the server before this one did
	Start   Start     `json:"start"`
	Machine Machine   `json:"machine"`
	Disk    Disk      `json:"disk"`
	Jobs    Jobs      `json:"jobs"`
	Threads Threads   `json:"threads"`
	Actors  Actors    `json:"actors"`
	Journal Journal   `json:"journal"`
	Catalog Catalog   `json:"catalog"`
	Edge    Edge      `json:"edge"`
	Indexes int       `json:"openIndexes"`
	LeftOut []string  `json:"leftOut,omitempty"` // projects that are not read, and why
	Sources []Source  `json:"sources,omitempty"` // those that are collected, such as web sites
	Models  []Model   `json:"models"`
	Meaning []Meaning `json:"meaning,omitempty"` // of each index, if there is an endpoint of embeddings
	// Questions are those that a model writes for sections, of each index, if one does.
	Questions []Questions `json:"questions,omitempty"`
	Backup    Backup      `json:"backup"`
	Cluster   *Cluster    `json:"cluster,omitempty"` // if the server is one of several nodes
}

// A Cluster is how several nodes stand, as one of them sees it.
type Cluster struct {
	Nodes    []Node  `json:"nodes"`
	Without  int     `json:"shardsWithoutNode"`
	LastBeat float64 `json:"lastBeatSeconds"` // since this node's last sign of life that arrived in the database
	Acts     bool    `json:"acts"`            // it does not while it cannot reach the database
}

// A Node is one of several.
type Node struct {
	Name    string    `json:"name"`
	Address string    `json:"address,omitempty"`
	Version string    `json:"version"`
	Started time.Time `json:"startedAt"`
	Self    bool      `json:"self,omitempty"`
	State   string    `json:"state"`            // "starting", "ready", "leaving", "isolated" or "silent"
	Reason  string    `json:"reason,omitempty"` // why it is isolated
	Shards  int       `json:"shards"`
}

// A Source is one whose pages are collected, and how that went.
type Source struct {
	Project string `json:"project"`
	Label   string `json:"label"`
	Kind    string `json:"kind"`
	State   string `json:"state"`            // in words: when it was read, what came of it, and when it is read again
	Failed  bool   `json:"failed,omitempty"` // the last time; what was read before still answers
}

// A Start is how the server came up.
type Start struct {
	Ready   float64 `json:"readySeconds"`   // from the beginning until requests were taken
	Pending int     `json:"pendingStreams"` // that called for work
	TakenUp float64 `json:"takenUpSeconds"` // until all of them had been taken up; 0 while that goes on
}

// A Machine is what the process has of the machine.
type Machine struct {
	System     string  `json:"system"` // such as linux/amd64
	Go         string  `json:"go"`
	Processors int     `json:"processors"`
	CPUSeconds float64 `json:"cpuSeconds"`            // that the process has used
	Resident   int64   `json:"residentBytes"`         // memory of the process; 0 if the system does not say
	Limit      int64   `json:"memoryLimit,omitempty"` // that the garbage collector stays under; 0 for none
	Goroutines int     `json:"goroutines"`
	OpenFiles  int     `json:"openFiles"`
	MaxFiles   int     `json:"maxOpenFiles"`
}

// A Disk is the one that the data directory is on.
type Disk struct {
	Total uint64 `json:"totalBytes"`
	Free  uint64 `json:"freeBytes"` // that this process may still use
}

// Jobs are the agent's.
type Jobs struct {
	Working int `json:"working"`
	Queued  int `json:"queued"`
	Awake   int `json:"awake"`
	// how long ago the oldest instruction was given that has not ended, in seconds; 0 if all have
	Oldest float64 `json:"oldestSeconds"`
}

// Threads are the assistant's.
type Threads struct {
	Answering int `json:"answering"`
	Queued    int `json:"queued"`
	Awake     int `json:"awake"`
}

// Actors are the jobs and threads in memory.
type Actors struct {
	Quarantined     []Quarantined `json:"quarantined"`
	Parked          []Quarantined `json:"parked"` // the former name, for one release
	Failures        int           `json:"failures"`
	Restarts        int           `json:"restarts"`
	DeadLetters     int           `json:"deadLetters"`
	Unhandled       int           `json:"unhandled"`
	Recoveries      int           `json:"recoveries"`
	RecoverySeconds float64       `json:"recoverySeconds"` // altogether
}

// Quarantined is a job or thread that answers with an error until it is retried.
type Quarantined struct {
	Kind   string    `json:"kind"`
	ID     string    `json:"id"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// A Journal is how the store of the actors stands.
type Journal struct {
	ID          string    `json:"id"`
	Position    uint64    `json:"position"`
	Bytes       int64     `json:"bytes"`
	FreeBytes   int64     `json:"freeBytes"` // of them, which are used again before the file grows
	Pending     int       `json:"pendingStreams"`
	Damaged     int       `json:"damagedStreams"`
	Unavailable bool      `json:"unavailable"`
	Commits     uint64    `json:"commits"`
	LastCommit  time.Time `json:"lastCommitAt,omitzero"`
	CommitP50   float64   `json:"commitP50Seconds"`
	CommitP99   float64   `json:"commitP99Seconds"`
	AppendP99   float64   `json:"appendP99Seconds"`
	Listed      uint64    `json:"listedPosition"` // that the catalog's listings reflect
}

// A Catalog is how the store of what is asked across actors stands.
type Catalog struct {
	ID       string `json:"id"`
	Revision uint64 `json:"revision"`
	Bytes    int64  `json:"bytes,omitempty"` // 0 if it is on PostgreSQL
	Postgres bool   `json:"postgres,omitempty"`
	Error    string `json:"error,omitempty"` // why it does not answer
}

// A Model is one that is reached over HTTP, with its use since the start.
type Model struct {
	Name     string `json:"name"`
	Endpoint string `json:"endpoint"`
	// closed: calls go through; open: calls are refused at once; half-open: one call is tried
	State     string  `json:"state"`
	Again     float64 `json:"triedAgainSeconds,omitempty"`
	Calls     int64   `json:"calls"`
	Failures  int64   `json:"failures"`
	Tokens    int64   `json:"tokens"` // of prompts and answers
	CostCents float64 `json:"costCents"`
	Unpriced  bool    `json:"unpriced,omitempty"` // it is not known what its tokens cost: limits on cost cannot hold
	Manners   string  `json:"manners,omitempty"`  // in what the endpoint has turned out to differ from others
	Fallbacks int64   `json:"fallbacks"`          // answers that the built-in model gave in its place
}

// A Meaning is how the vectors stand by which an index is searched by meaning.
type Meaning struct {
	Index    string  `json:"index"`
	Model    string  `json:"model"`             // whose vectors are made
	Serving  string  `json:"serving,omitempty"` // whose vectors searches use; empty while there are too few
	Sections int     `json:"sections"`          // those that say the same count once
	Embedded int     `json:"embedded"`
	Working  bool    `json:"working"`
	Problem  string  `json:"problem,omitempty"`
	Again    float64 `json:"triedAgainSeconds,omitempty"`
}

// Questions are how those stand that a model writes for the sections of an index.
type Questions struct {
	Index     string  `json:"index"`
	Model     string  `json:"model"`
	Sections  int     `json:"sections"` // those that say the same count once
	Written   int     `json:"written"`  // of them
	Tokens    int64   `json:"tokens"`
	CostCents float64 `json:"costCents"`
	ToGoCents float64 `json:"toGoCents"` // about, for the sections that have none yet
	Problem   string  `json:"problem,omitempty"`
}

// An Edge counts requests and their outcomes.
type Edge struct {
	Streams  int            `json:"openStreams"`
	InFlight int            `json:"requestsInFlight"`
	Queue    float64        `json:"queueSeconds"` // until who comes now is expected to be answered
	Working  int            `json:"queueWorking"`
	Waiting  int            `json:"queueWaiting"`
	Rate     float64        `json:"queueRate"` // that the machine gets done in a second, as measured while others waited
	Refused  map[string]int `json:"refused,omitempty"`
}

// A Backup says when the data directory was last copied.
type Backup struct {
	Made    *Copy    `json:"made,omitempty"`    // the last one that was made
	Failed  *Copy    `json:"failed,omitempty"`  // one that failed after it
	Running *Running `json:"running,omitempty"` // one that the console's button began
	Folder  string   `json:"folder"`            // that the console's button makes backups in
}

// A Copy is one backup.
type Copy struct {
	Dir      string    `json:"dir"`
	Began    time.Time `json:"beganAt"`
	Seconds  float64   `json:"seconds"`
	Position uint64    `json:"journalPosition,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"` // of the journal and the catalog
	Error    string    `json:"error,omitempty"`
}

// Running is a backup that is being made.
type Running struct {
	Dir   string    `json:"dir"`
	Began time.Time `json:"beganAt"`
	Text  string    `json:"text"` // what it is at
	Done  int       `json:"done"`
	Total int       `json:"total"`
}

// Bytes is a number of bytes as people read it.
func Bytes(n uint64) string {
	unit, names := float64(n), []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"}
	for len(names) > 1 && unit >= 1024 {
		unit, names = unit/1024, names[1:]
	}
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", unit, names[0])
}
