// Package harness is what the themes of tests share: the program as processes that are started and killed, its projects and
// clients, several nodes on one PostgreSQL, the console's client, and stand-ins for language models, code hosts, web sites and
// receivers of webhooks. Each theme is a package of tests beside this one, so that Go runs and caches it by itself. Its TestMain
// is Main, by which the test binary is the program as well.
package harness
