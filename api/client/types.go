package client

import (
	"time"

	"docent/api"
	"docent/api/stream"
)

// The resources of the API. Their fields are those of the OpenAPI document; a test holds the two together.
type (
	// A Job is the agent's work on one request.
	Job = api.Job
	// A Session is a job as the deprecated version 1 shows it.
	Session = api.Session
	// An Explanation is how an answer came about.
	Explanation = api.Explanation
	// A Suggestion is a further question, and where the documentation answers it.
	Suggestion = stream.Suggestion

	// A CreateJob is an instruction for the agent.
	CreateJob struct {
		Prompt  string `json:"prompt"`
		Model   string `json:"model,omitempty"` // the project's if empty
		AsDraft bool   `json:"asDraft,omitempty"`
		DryRun  bool   `json:"dryRun,omitempty"` // publish nothing
	}
	// A FollowUp is one more instruction to a job.
	FollowUp struct {
		Prompt string `json:"prompt"`
	}
	// A JobList is a page of jobs.
	JobList struct {
		Jobs       []Job   `json:"jobs"`
		NextCursor *string `json:"nextCursor"`
	}

	// A Filter leaves out pages that are not of the version, language, tag, groups or sources.
	Filter struct {
		Version  string   `json:"version,omitempty"`
		Language string   `json:"language,omitempty"`
		Tag      string   `json:"tag,omitempty"`
		Groups   []string `json:"groups,omitempty"` // only with a server key; see Client.ReaderToken
		Sources  []string `json:"sources,omitempty"`
	}
	// An AskContext is what the reader has selected or looks at.
	AskContext struct {
		Type      string `json:"type"` // code or textSelection
		Value     string `json:"value"`
		ElementID string `json:"elementId,omitempty"`
		Path      string `json:"path,omitempty"`
	}
	// An Ask is a question as the API takes it. Ask and AskStream make one of a Question.
	Ask struct {
		FP                string       `json:"fp"` // anonymous, or the id of the user
		ID                string       `json:"id,omitempty"`
		ThreadID          string       `json:"threadId,omitempty"`
		ThreadKey         string       `json:"threadKey,omitempty"`
		RetrievalPageSize int          `json:"retrievalPageSize,omitempty"`
		Filter            *Filter      `json:"filter,omitempty"`
		Context           []AskContext `json:"context,omitempty"`
		CurrentPath       string       `json:"currentPath,omitempty"`
		Trigger           string       `json:"trigger,omitempty"`
		MessageID         string       `json:"messageId,omitempty"`
		Explain           bool         `json:"explain,omitempty"` // with an admin key
		Messages          []Message    `json:"messages"`
	}
	// A Message is one of a conversation.
	Message struct {
		ID      string        `json:"id,omitempty"`
		Role    string        `json:"role"`
		Content string        `json:"content,omitempty"`
		Parts   []MessagePart `json:"parts,omitempty"`
	}
	// A MessagePart is a piece of a message.
	MessagePart struct {
		Type string `json:"type"`
		Text string `json:"text,omitempty"`
	}
	// A SessionMessage is one of the instruction in the deprecated form.
	SessionMessage struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	// A CreateSession is the body of the deprecated way to create a job.
	CreateSession struct {
		Messages []SessionMessage `json:"messages"`
		Branch   string           `json:"branch,omitempty"`
		AsDraft  bool             `json:"asDraft,omitempty"`
		Model    string           `json:"model,omitempty"`
	}
	// A SessionList is all sessions that were asked for.
	SessionList struct {
		AllSessions []Session `json:"allSessions"`
	}

	// A Search is what to look for.
	Search struct {
		Query          string  `json:"query"`
		PageSize       int     `json:"pageSize,omitempty"`
		ScoreThreshold float64 `json:"scoreThreshold,omitempty"`
		Filter         *Filter `json:"filter,omitempty"`
		CurrentPath    string  `json:"currentPath,omitempty"`
	}
	// A SearchHit is a section that was found.
	SearchHit struct {
		Content  string `json:"content"`
		Path     string `json:"path"`
		Metadata struct {
			Title       string   `json:"title"`
			URL         string   `json:"url,omitempty"`
			Heading     string   `json:"heading,omitempty"`
			Anchor      string   `json:"anchor,omitempty"`
			Breadcrumbs []string `json:"breadcrumbs,omitempty"`
			Description string   `json:"description,omitempty"`
			Version     string   `json:"version,omitempty"`
			Language    string   `json:"language,omitempty"`
			Tags        []string `json:"tags,omitempty"`
			Source      string   `json:"source,omitempty"`
			Score       float64  `json:"score"`
			Excerpt     string   `json:"excerpt,omitempty"`
		} `json:"metadata"`
	}
	// A ReadPage names a page.
	ReadPage struct {
		Path   string   `json:"path"`
		Groups []string `json:"groups,omitempty"` // only with a server key; see Client.ReaderToken
	}
	// A Page is one of the documentation.
	Page struct {
		Path    string `json:"path"`
		Content string `json:"content"`
		Title   string `json:"title,omitempty"`
		URL     string `json:"url,omitempty"` // its address for readers
	}
	// A RateAnswer rates an answer.
	RateAnswer struct {
		ThreadID  string     `json:"threadId"`
		MessageID string     `json:"messageId"`
		Rating    api.Rating `json:"rating"`
		Comment   string     `json:"comment,omitempty"`
		FP        string     `json:"fp,omitempty"`
		ThreadKey string     `json:"threadKey,omitempty"`
	}
	// A HandOver hands a conversation over to people, at its answer.
	HandOver struct {
		ThreadID  string `json:"threadId"`
		MessageID string `json:"messageId"`
		Message   string `json:"message"`
		Name      string `json:"name,omitempty"`
		Email     string `json:"email,omitempty"`
		FP        string `json:"fp,omitempty"`
		ThreadKey string `json:"threadKey,omitempty"`
		Public    bool   `json:"public,omitempty"` // the reader was told that it becomes an issue that others may read
	}

	// An Update is one run that re-indexes the documentation.
	Update struct {
		ID        string           `json:"_id"`
		ProjectID string           `json:"projectId"`
		Subdomain string           `json:"subdomain"`
		Status    api.UpdateStatus `json:"status"`
		Summary   string           `json:"summary"`
		Logs      []string         `json:"logs"`
		CreatedAt time.Time        `json:"createdAt"`
		StartedAt *time.Time       `json:"startedAt"`
		EndedAt   *time.Time       `json:"endedAt"`
		Source    string           `json:"source"`
		Commit    *UpdateCommit    `json:"commit"` // nil until it is known
	}
	// An UpdateCommit is what the documentation was read at.
	UpdateCommit struct {
		SHA          string       `json:"sha"`
		Ref          string       `json:"ref"`
		Message      string       `json:"message"`
		FilesChanged ChangedFiles `json:"filesChanged"`
	}
	// ChangedFiles are those that have changed since the last successful update.
	ChangedFiles struct {
		Added    []string `json:"added"`
		Modified []string `json:"modified"`
		Removed  []string `json:"removed"`
	}
	// A Challenge is a proof of work that a project may ask for with each question.
	Challenge struct {
		Algorithm string `json:"algorithm"`
		Challenge string `json:"challenge"`
		MaxNumber int    `json:"maxnumber"`
		Salt      string `json:"salt"`
		Signature string `json:"signature"`
	}
	// WidgetSettings are how the widget looks on a project's site; what is not stored is empty.
	WidgetSettings struct {
		Accent        string  `json:"accent,omitempty"`
		AccentDark    string  `json:"accentDark,omitempty"`
		Theme         string  `json:"theme,omitempty"`
		Button        string  `json:"button,omitempty"`
		Label         string  `json:"label,omitempty"`
		Language      string  `json:"language,omitempty"`
		Greeting      string  `json:"greeting,omitempty"`
		Suggestions   string  `json:"suggestions,omitempty"`   // a question in each line
		Contact       string  `json:"contact,omitempty"`       // address of people who help, or "form"
		ContactIssues *string `json:"contactIssues,omitempty"` // not nil if what the form sends becomes an issue
		Logo          string  `json:"logo,omitempty"`          // address of a picture, or its path on the site
		OpenIn        string  `json:"openIn,omitempty"`        // chat clients, separated by blanks
		Proof         *string `json:"proof,omitempty"`         // not nil if each question brings a proof of work
	}
	// A Status is how the service is.
	Status struct {
		Status  string `json:"status"`
		Version string `json:"version,omitempty"`
	}
)

// Analytics.
type (
	// A Listing is what every page of a list has.
	Listing struct {
		NextCursor *string `json:"nextCursor"`
		HasMore    bool    `json:"hasMore"`
	}
	// A Conversation is a question and its answer.
	Conversation struct {
		ID               string     `json:"id"` // of the thread
		MessageID        string     `json:"messageId"`
		Timestamp        time.Time  `json:"timestamp"`
		Query            string     `json:"query"`
		Response         string     `json:"response"`
		ResponseType     string     `json:"responseType"`
		Sources          []Source   `json:"sources"`
		ResolutionStatus string     `json:"resolutionStatus"` // answered or unanswered
		QueryCategory    *string    `json:"queryCategory"`
		PageURL          *string    `json:"pageUrl"`
		Caller           string     `json:"caller"`
		Channel          *string    `json:"channel"`
		Model            string     `json:"model"`
		Error            *string    `json:"error"`
		Rating           api.Rating `json:"rating"` // empty until somebody rates the answer
		Comment          *string    `json:"comment"`
		FallbackFor      *string    `json:"fallbackFor"`
		Degraded         []string   `json:"degraded"` // what did not take part in the answer, each with the reason
	}
	// ConversationTotals count the whole time that was asked for.
	ConversationTotals struct {
		Threads    int `json:"threads"`
		Callers    int `json:"callers"`
		Questions  int `json:"questions"`
		Answered   int `json:"answered"`
		Unanswered int `json:"unanswered"`
		Failed     int `json:"failed"`
		ThumbsUp   int `json:"thumbsUp"`
		ThumbsDown int `json:"thumbsDown"`
	}
	// A ConversationList is a page of questions; its totals come with the first one.
	ConversationList struct {
		Conversations []Conversation      `json:"conversations"`
		Totals        *ConversationTotals `json:"totals"`
		Listing
	}
	// A Thread is a whole conversation.
	Thread struct {
		ThreadID  string          `json:"threadId"`
		CreatedAt time.Time       `json:"createdAt"`
		Caller    string          `json:"caller"`
		Messages  []ThreadMessage `json:"messages"`
		Replaced  []ThreadMessage `json:"replaced"`
	}
	// A ThreadMessage is a question or an answer. What questions do not have is empty.
	ThreadMessage struct {
		ID               string    `json:"id"`
		Role             string    `json:"role"` // user or assistant
		Content          string    `json:"content"`
		CreatedAt        time.Time `json:"createdAt"`
		Sources          []Source  `json:"sources"`
		ResolutionStatus string    `json:"resolutionStatus"`
		Model            string    `json:"model"`
		FallbackFor      string    `json:"fallbackFor"`
		Degraded         []string  `json:"degraded"`
		Error            string    `json:"error"`
		Feedback         *struct {
			Rating    api.Rating `json:"rating"`
			Comment   *string    `json:"comment"`
			CreatedAt time.Time  `json:"createdAt"`
		} `json:"feedback"`
	}
	// A Caller is somebody who has asked questions.
	Caller struct {
		Caller    string    `json:"caller"`
		Threads   int       `json:"threads"`
		Questions int       `json:"questions"`
		LastAt    time.Time `json:"lastAt"`
	}
	// CallerStats are the callers, and how they ask.
	CallerStats struct {
		Web     int      `json:"web"`
		API     int      `json:"api"`
		Other   int      `json:"other"`
		Total   int      `json:"total"`
		Callers []Caller `json:"callers"`
		Listing
	}
	// A SearchCount is what was searched for.
	SearchCount struct {
		SearchQuery    string    `json:"searchQuery"`
		Hits           int       `json:"hits"`
		Results        int       `json:"results"`
		CTR            *float64  `json:"ctr"`
		TopClickedPage *string   `json:"topClickedPage"`
		LastSearchedAt time.Time `json:"lastSearchedAt"`
	}
	// A SearchList is a page of searches.
	SearchList struct {
		Searches      []SearchCount `json:"searches"`
		TotalSearches int           `json:"totalSearches"`
		Listing
	}
	// A Feedback is what a reader thinks of an answer.
	Feedback struct {
		ID        string     `json:"id"`
		ThreadID  string     `json:"threadId"`
		Path      string     `json:"path"`
		Paths     []string   `json:"paths"`
		Query     string     `json:"query"`
		Rating    api.Rating `json:"rating"`
		Helpful   bool       `json:"helpful"`
		Comment   *string    `json:"comment"`
		Contact   *string    `json:"contact"`
		CreatedAt time.Time  `json:"createdAt"`
		Source    string     `json:"source"`
		Status    string     `json:"status"`
		Replaced  bool       `json:"replaced"`
	}
	// A FeedbackList is a page of ratings.
	FeedbackList struct {
		Feedback []Feedback `json:"feedback"`
		Listing
	}
	// An Evaluate is a conversation whose answers shall be judged.
	Evaluate struct {
		Model     string             `json:"model,omitempty"` // the project's if empty
		Questions []EvaluateQuestion `json:"questions"`
	}
	// An EvaluateQuestion is one of its questions.
	EvaluateQuestion struct {
		Question    string  `json:"question"`
		Filter      *Filter `json:"filter,omitempty"`
		CurrentPath string  `json:"currentPath,omitempty"` // the page that the reader is on
	}
	// An Evaluation has an answer to each question.
	Evaluation struct {
		Answers []EvaluatedAnswer `json:"answers"`
	}
	// An EvaluatedAnswer is what came of one question.
	EvaluatedAnswer struct {
		Question    string            `json:"question"`
		Answer      string            `json:"answer"`
		Answered    bool              `json:"answered"` // the assistant takes the documentation to answer this
		Sources     []EvaluatedSource `json:"sources"`
		Model       string            `json:"model"`
		FallbackFor *string           `json:"fallbackFor"`
		Error       *string           `json:"error"` // why there is no answer
		TookMS      int64             `json:"tookMs"`
		Degraded    []string          `json:"degraded,omitempty"` // what did not take part as it should have, and why
	}
	// An EvaluatedSource is a place that an answer cites.
	EvaluatedSource struct {
		Path   string `json:"path,omitempty"` // of the file; empty if the index no longer has the page
		Anchor string `json:"anchor,omitempty"`
		URL    string `json:"url"`
		Title  string `json:"title"`
	}
	// A PageFeedback is how answers were rated that cite a page.
	PageFeedback struct {
		Path       string `json:"path"`
		ThumbsUp   int    `json:"thumbsUp"`
		ThumbsDown int    `json:"thumbsDown"`
		Code       int    `json:"code"`
		Total      int    `json:"total"`
	}
	// A PageFeedbackList is a page of rated pages.
	PageFeedbackList struct {
		Feedback []PageFeedback `json:"feedback"`
		Listing
	}
)

func (l Listing) next() *string { return l.NextCursor }
func (l JobList) next() *string { return l.NextCursor }
