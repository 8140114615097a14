// Package outbound sends signed messages to webhooks whose addresses people enter.
//
// Messages are signed as the Standard Webhooks specification says (https://www.standardwebhooks.com). They go to https
// addresses, and never to those by which a machine asks its cloud for credentials; whether they may go to this machine
// and to private networks is the sender's policy. A name is resolved and checked at the moment of the connection.
package outbound
