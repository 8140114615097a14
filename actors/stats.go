package actors

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docent/actors/job"
	"docent/actors/thread"
	"docent/api"
)

// Stats counts actors by state.
type Stats struct {
	Live         int           // actors that are awake
	LiveJobs     int           // of them
	LiveThreads  int           // of them
	Passivations int           // actors that went to sleep
	Recoveries   int           // actors that were rebuilt from the journal
	Recovering   time.Duration // time that this took altogether
	Failures     int           // panics of actors
	Restarts     int
	DeadLetters  int
	Unhandled    int // messages that nobody understood
	Quarantined  []QuarantinedError
	RunningJobs  int
	WaitingJobs  int // for their turn to run
	RunningTurns int
	WaitingTurns int
	OldestJob    time.Duration // how long the one has waited that has waited longest for its turn to run; 0 if none waits
	OldestTurn   time.Duration // the same of answers
	// how long ago the oldest instruction of a job was given that has not ended; 0 if all have
	OldestInstruction time.Duration
}

// oldest holds when the oldest instruction was given of each job that has one.
type oldest struct {
	mu    sync.Mutex
	given map[api.JobID]time.Time
}

func (o *oldest) set(id api.JobID, given time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if given.IsZero() {
		delete(o.given, id)
		return
	}
	if o.given == nil {
		o.given = make(map[api.JobID]time.Time)
	}
	o.given[id] = given
}

// age is how long ago the oldest of them was given; 0 if there is none.
func (o *oldest) age(now time.Time) (age time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, given := range o.given {
		age = max(age, now.Sub(given))
	}
	return age
}

type counts struct {
	oldest                                                                                 oldest
	live, passivations, failures, restarts, deadLetters, unhandled, recoveries, recovering atomic.Int64
	recoverySeconds                                                                        prometheus.Histogram
	jobs, answers, tasks                                                                   *prometheus.CounterVec
	jobSeconds                                                                             *prometheus.HistogramVec
}

func (c *counts) init() {
	c.recoverySeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "docent_actors_recovery_seconds", Help: "Time to rebuild an actor from the journal.",
		Buckets: prometheus.ExponentialBuckets(10e-6, 4, 10),
	})
	c.jobs = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_jobs_ended_total",
		Help: "Instructions of jobs that ended, by result: changed, nothing_to_do, not_understood, needs_detail, failed, misconfigured (the code host refuses the project), cancelled."},
		[]string{"result"})
	c.jobSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "docent_job_duration_seconds",
		Help:    "Time from an instruction's being given to a job until its end, by whether it failed.",
		Buckets: []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}}, []string{"failed"})
	c.answers = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_answers_total",
		Help: "Answers of the assistant that ended, by result: answered, unanswered (the documentation does not answer the question), failed, stopped (by somebody)."},
		[]string{"result"})
	c.tasks = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docent_task_attempts_total",
		Help: "Times that background work was done, by its kind and result: ok or failed. What failed is tried again."},
		[]string{"task", "result"})
	for _, result := range []string{string(api.OutcomeChanged), string(api.OutcomeNothingToDo), string(api.OutcomeNotUnderstood),
		string(api.OutcomeNeedsDetail), job.ResultFailed, job.ResultMisconfigured, job.ResultCancelled} {
		c.jobs.WithLabelValues(result) // a counter that begins with its first event shows no increase
	}
	for _, result := range []string{thread.ResultAnswered, thread.ResultUnanswered, thread.ResultFailed, thread.ResultStopped} {
		c.answers.WithLabelValues(result)
	}
	for _, failed := range []string{"true", "false"} {
		c.jobSeconds.WithLabelValues(failed)
	}
}

// vectors are what is counted by its result.
func (c *counts) vectors() []prometheus.Collector {
	return []prometheus.Collector{c.recoverySeconds, c.jobs, c.jobSeconds, c.answers, c.tasks}
}

func (c *counts) jobEnded(result string, took time.Duration) {
	failed := "false"
	switch result {
	case job.ResultCancelled:
		c.jobs.WithLabelValues(result).Inc() // when is somebody's choice
		return
	case job.ResultFailed, job.ResultMisconfigured:
		failed = "true"
	}
	c.jobs.WithLabelValues(result).Inc()
	c.jobSeconds.WithLabelValues(failed).Observe(max(0, took.Seconds()))
}

func (c *counts) recovered(d time.Duration) {
	c.recoveries.Add(1)
	c.recovering.Add(int64(d))
	c.recoverySeconds.Observe(d.Seconds())
}

// Stats are the figures of now.
func (s *System) Stats() Stats {
	c := &s.counts
	st := Stats{
		Live: int(c.live.Load()), Passivations: int(c.passivations.Load()), Recoveries: int(c.recoveries.Load()),
		Recovering: time.Duration(c.recovering.Load()), Failures: int(c.failures.Load()), Restarts: int(c.restarts.Load()),
		DeadLetters: int(c.deadLetters.Load()), Unhandled: int(c.unhandled.Load()),
	}
	st.LiveJobs, st.LiveThreads = int(s.jobs.dir.live.Load()), int(s.threads.dir.live.Load())
	open, before := s.openGate.load()
	st.RunningJobs, st.WaitingJobs = s.jobGate.load()
	st.RunningJobs = max(st.RunningJobs, open-st.WaitingJobs) // one that waits for a language model is at work
	st.WaitingJobs += before
	st.RunningTurns, st.WaitingTurns = s.turnGate.load()
	st.OldestJob, st.OldestTurn = max(s.openGate.oldest(), s.jobGate.oldest()), s.turnGate.oldest()
	st.OldestInstruction = c.oldest.age(time.Now())
	s.quarantineMu.Lock()
	defer s.quarantineMu.Unlock()
	st.Quarantined = slices.Clone(s.quarantined)
	return st
}

// What Collect reports beside the recovery histogram, in order.
var descriptions = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*Stats) int
}{
	{desc("live", "Actors that are awake."), prometheus.GaugeValue, func(s *Stats) int { return s.Live }},
	{desc("passivations_total", "Actors that went to sleep."), prometheus.CounterValue,
		func(s *Stats) int { return s.Passivations }},
	{desc("failures_total", "Panics of actors."), prometheus.CounterValue, func(s *Stats) int { return s.Failures }},
	{desc("restarts_total", "Restarts of actors after a failure."), prometheus.CounterValue,
		func(s *Stats) int { return s.Restarts }},
	{desc("quarantined", "Actors that answer with an error until they are retried."), prometheus.GaugeValue,
		func(s *Stats) int { return len(s.Quarantined) }},
	{desc("parked", "The former name of docent_actors_quarantined, for one release."), prometheus.GaugeValue,
		func(s *Stats) int { return len(s.Quarantined) }},
	{desc("dead_letters_total", "Messages to actors that are not there."), prometheus.CounterValue,
		func(s *Stats) int { return s.DeadLetters }},
	{desc("unhandled_total", "Messages that no actor understood."), prometheus.CounterValue,
		func(s *Stats) int { return s.Unhandled }},
	{desc("jobs_running", "Runs of jobs that work."), prometheus.GaugeValue, func(s *Stats) int { return s.RunningJobs }},
	{desc("jobs_waiting", "Runs of jobs that wait for their turn."), prometheus.GaugeValue,
		func(s *Stats) int { return s.WaitingJobs }},
	{desc("turns_running", "Answers that are being written."), prometheus.GaugeValue,
		func(s *Stats) int { return s.RunningTurns }},
	{desc("turns_waiting", "Answers that wait for their turn."), prometheus.GaugeValue,
		func(s *Stats) int { return s.WaitingTurns }},
}

var (
	descOldestJob = prometheus.NewDesc("docent_jobs_oldest_waiting_seconds",
		"How long ago the instruction was given that has waited longest for its turn; 0 if none waits.", nil, nil)
	descOldestInstruction = prometheus.NewDesc("docent_jobs_oldest_instruction_seconds",
		"How long ago the oldest instruction was given that has not ended, be it that it waits or is worked on; restarts do not set it back. 0 if all have ended.", nil, nil)
	descOldestTurn = prometheus.NewDesc("docent_answers_oldest_waiting_seconds",
		"How long the answer has waited that has waited longest for its turn; 0 if none waits.", nil, nil)
)

func desc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("docent_actors_"+name, help, nil, nil)
}

// Describe makes a System a prometheus.Collector.
func (s *System) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		ch <- d.desc
	}
	ch <- descOldestJob
	ch <- descOldestInstruction
	ch <- descOldestTurn
	for _, v := range s.counts.vectors() {
		v.Describe(ch)
	}
}

// Collect makes a System a prometheus.Collector.
func (s *System) Collect(ch chan<- prometheus.Metric) {
	st := s.Stats()
	for _, d := range descriptions {
		ch <- prometheus.MustNewConstMetric(d.desc, d.kind, float64(d.value(&st)))
	}
	ch <- prometheus.MustNewConstMetric(descOldestJob, prometheus.GaugeValue, st.OldestJob.Seconds())
	ch <- prometheus.MustNewConstMetric(descOldestInstruction, prometheus.GaugeValue, st.OldestInstruction.Seconds())
	ch <- prometheus.MustNewConstMetric(descOldestTurn, prometheus.GaugeValue, st.OldestTurn.Seconds())
	for _, v := range s.counts.vectors() {
		v.Collect(ch)
	}
}
