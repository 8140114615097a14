// Package gaps follows topics that the documentation lacks, from the questions of readers to the merge that answers
// them: which there are, what somebody decided about one, the job that was opened for it, and whether such questions
// are answered since.
//
// A topic that nobody acted on is named by a question in it and is found through that question, whatever else has come
// to it. One that somebody acts on is stored first. A job is opened in three steps, each of which may be the last before
// a crash: the instruction is stored, the job is created under a key that names the topic and the attempt, and the job's
// id is stored. The next look at the topic finds the job by that key.
package gaps
