// Package mcp lets agents in editors use the documentation and the editing agent over the Model Context Protocol
// (https://modelcontextprotocol.io/specification).
//
// For each project there are two servers: one for readers, with the tools search, read_page, ask and feedback and with
// the published pages as resources, and one for the agent's jobs. Every tool is a request to our own API in this
// process, with the key that the client has sent: so keys, quotas, limits, metrics and words of errors are those of the
// API, and there is one place that decides who may read what.
//
// Sessions are the protocol's library's. One that was not used for long ends; a client starts another.
package mcp
