// Package actors runs one actor for each job and each thread, on Proto.Actor. It is the only package that knows the
// runtime; the rooms job and thread hold what an actor does.
//
//	System
//	├── jobs-0 … jobs-31         supervisors, one for each share of the ids
//	│   └── jobs-7/job_…         one actor for each job that is awake
//	└── threads-0 … threads-31
//	    └── threads-3/thr_…      one for each thread that is awake
//
// Finding. A command goes to the supervisor of its id, which forwards it to the child, and starts the child first where
// there is none: the child recovers from snapshot and events before it looks at its first command. A child that was
// started only to say "not found" stops again.
//
// Sleeping. A child that had nothing to do for the idle time, or one of the longest unused where too many are awake, is
// asked by its supervisor whether it waits for anything. If not, and nothing was sent to it meanwhile, it is poisoned;
// what comes for it from then on is held back until it has ended and goes to its successor. No command is lost.
//
// Failing. A panic is answered to whoever asked, logged with its stack, and the child is restarted from the journal, later
// each time (exponential backoff with jitter). One that fails too often within a minute is parked, and so is one whose
// stream in the journal cannot be understood, at once: it answers with an error until the process starts again, it is
// counted and logged, and its siblings and its supervisor do not notice. Supervisors themselves are not restarted: they
// recover from a panic in place, since a restart would stop all their children.
//
// Waiting. An actor waits for its own journal append and for nothing else. What goes outside is an effect: a goroutine
// that reports to the actor by a message. How many work at once is bounded for each kind, in a fair order among projects.
//
// Starting. Streams that the journal lists as pending are woken in the background while the service answers already;
// everything else wakes with its first command.
//
// Stopping. Commands are refused; supervisors take what is queued, then stop their children (runs are cancelled and taken
// up at the next start, readers get a proper end) and themselves; then effects are waited for. The stores may be closed
// after that.
package actors
