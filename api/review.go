package api

import (
	"cmp"
	"strings"
	"time"
)

// A ReviewMode says which comments on a project's pull requests are instructions to their jobs.
type ReviewMode string

// The modes. Empty is ReviewMention.
const (
	ReviewMention ReviewMode = "mention" // comments that name the agent
	ReviewLines   ReviewMode = "lines"   // these, and every comment on a line
	ReviewOff     ReviewMode = "off"     // none
)

// DefaultHandle is the name that comments call the agent by, if a project has no other.
const DefaultHandle = "docent"

// ReviewMode is which comments are instructions.
func (p Project) ReviewMode() ReviewMode { return cmp.Or(p.Review, ReviewMention) }

// AgentHandle is the name that comments call the agent by, without the @.
func (p Project) AgentHandle() string { return cmp.Or(p.Handle, DefaultHandle) }

// review checks which comments are instructions.
func (p *problems) review(project Project) {
	switch project.Review {
	case "", ReviewMention, ReviewLines, ReviewOff:
	default:
		p.add("review", "must be mention, lines or off")
	}
	if h := project.Handle; h != "" && !validHandle(h) {
		p.add("handle", "must be a name as code hosts have them: at most 100 letters, digits, hyphens, underscores and dots, without the @")
	}
}

func validHandle(s string) bool {
	if len(s) > 100 || strings.Trim(s, "-._") != s {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-._", rune(c)) {
			return false
		}
	}
	return true
}

// A PullHint is what a code host's webhook says of a pull request: that there may be news.
type PullHint struct {
	Repository string // OWNER/NAME
	Number     int
	Event      string
}

// A ReviewPull is a pull request of a job on a code host, whose comments are followed.
type ReviewPull struct {
	Project ProjectID `json:"project"`
	Number  int       `json:"number"`
	Job     JobID     `json:"job"`
	Branch  string    `json:"branch"`
	Link    string    `json:"link"`
	State   PullState `json:"state"`
	Next    time.Time `json:"next"` // when it is looked at; zero for not any more
	Hinted  bool      `json:"hinted,omitempty"`
	From    time.Time `json:"from"`           // comments of before are no instructions
	Active  time.Time `json:"active"`         // when there was news last
	Newest  time.Time `json:"newest"`         // when the newest comment that was read appeared; zero for none
	Seen    []string  `json:"seen,omitempty"` // ids of comments that were read: changed later, they are nothing new
	Failed  int       `json:"failed,omitempty"`
	Said    string    `json:"said,omitempty"` // what the host had against the last look
}

// ReviewState is how far an instruction from comments has come.
type ReviewState string

// The states, in their order.
const (
	ReviewTaken    ReviewState = "taken"    // it is to be given to the job
	ReviewGiven    ReviewState = "given"    // the job has it
	ReviewEnded    ReviewState = "ended"    // what is to be answered is known
	ReviewAnswered ReviewState = "answered" // it is answered, or cannot be
)

// A ReviewAsk is an instruction to a job from one comment, or from the comments of one review.
type ReviewAsk struct {
	ID       string          `json:"id"`  // of the message to the job
	Key      string          `json:"key"` // of the comments: nothing else is made of them
	Project  ProjectID       `json:"project"`
	Number   int             `json:"number"` // of the pull request
	Pull     string          `json:"pull"`   // its link
	Job      JobID           `json:"job"`
	State    ReviewState     `json:"state"`
	Comments []ReviewComment `json:"comments"` // at least one
	Prompt   string          `json:"prompt,omitempty"`
	Answer   string          `json:"answer,omitempty"`
	Commit   string          `json:"commit,omitempty"` // that carried it out
	Result   string          `json:"result,omitempty"` // in a word, for logs and figures
	At       time.Time       `json:"at"`
	Answered int             `json:"answered,omitempty"` // how many threads have the answer
}

// A ReviewComment is a comment on a pull request of a code host.
type ReviewComment struct {
	ID     string    `json:"id"`
	Author string    `json:"author"`
	Text   string    `json:"text"`             // the instruction
	Quoted string    `json:"quoted,omitempty"` // what the comment quotes
	Path   string    `json:"path,omitempty"`
	Line   int       `json:"line,omitempty"`
	Old    bool      `json:"old,omitempty"` // the line is one of the version before the change
	Quote  string    `json:"quote,omitempty"`
	Thread string    `json:"thread,omitempty"`
	Link   string    `json:"link,omitempty"`
	At     time.Time `json:"at"`
}
