// Package lab runs the servers that the load suite measures: docent itself, and the bare server beside it. Each
// measurement has a fresh process, on a data directory that stays from one to the next.
//
// A lab also keeps what would disturb the figures apart: the servers have processors of their own where that is asked
// for ([Partition]), processes that keep these processors busy run beside them where the measurement is of that, and
// profiles are taken while a load lasts.
package lab
