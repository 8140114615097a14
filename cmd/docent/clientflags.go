package main

import (
	"os"

	"github.com/spf13/cobra"

	"docent/client"
)

// clientFlags adds the flags that name a server and a key.
func clientFlags(cmd *cobra.Command, c *client.Client) {
	cmd.PersistentFlags().StringVar(&c.Base, "url", envOr("URL", "http://127.0.0.1:8080"),
		"address of the server (DOCENT_URL)")
	cmd.PersistentFlags().StringVar(&c.Key, "key", envOr("KEY", ""), "API key; better in DOCENT_KEY, which no list of processes shows")
	cmd.PersistentFlags().Lookup("key").DefValue = "" // help shows defaults
}

func envOr(name, standard string) string {
	if v := os.Getenv(envPrefix + name); v != "" {
		return v
	}
	return standard
}
