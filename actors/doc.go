// Package actors runs one actor for each job, each thread and each task, on Proto.Actor. It is the only package that
// knows the runtime; packages job and thread hold what an actor does.
//
//	System
//	├── jobs-0 … jobs-31         supervisors, one for each share of the ids
//	│   └── jobs-7/job_…         one actor for each job that is awake
//	├── threads-0 … threads-31
//	│   └── threads-3/thr_…      one for each thread that is awake
//	└── tasks-0 … tasks-31
//	    └── tasks-5/webhooks/…   one for each name of work that comes due by itself, see package task
//
// Finding. A command goes to the supervisor of its id, which forwards it to the child. If there is no child, it
// starts one: the child recovers from snapshot and events before it looks at its first command. A child that was
// started only to answer "not found" stops again.
//
// Passivation. The supervisor asks a child that was idle for long, or that is one of the longest unused when too many
// are awake, whether it waits for anything. If it does not, and nothing was sent to it meanwhile, it is poisoned.
// Commands that come for it from then on are stashed until it has ended, and go to its successor. No command is lost.
//
// Failing. When a child panics, the asker gets an error, the log gets the stack, and the child is restarted from the
// journal, later each time (exponential backoff with jitter). A child that fails too often within a minute is
// quarantined; one whose stream in the journal cannot be understood is quarantined at once, since that failure is
// permanent. That the journal does not answer is no failure of a child: it is restarted until it can be read, and also
// if it is not known whether an append was stored. A quarantined actor answers with an error until an operator has
// it retried or the process starts again. It is counted and logged; its siblings and its supervisor go on. Supervisors
// are never restarted: they recover from a panic in place, since a restart would stop all their children.
//
// Waiting. An actor waits for its own journal append and for nothing else. Work that reaches outside is a run: a
// goroutine that reports to the actor by a message. How many runs of a kind work at once is bounded, in a fair order
// among projects.
//
// Starting. Streams that the journal lists as pending are woken in the background while the service already answers.
// Everything else wakes with its first command.
//
// Stopping. New commands are refused. Supervisors take what is queued, then stop their children and themselves: runs
// are canceled and taken up at the next start, readers get a proper end. Then runs are waited for. After that the
// stores may be closed.
package actors
