package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docent/api"
	"docent/api/client"
	"docent/cmd/docent/config"
	"docent/cmd/docent/control"
	"docent/cmd/docent/operator"
)

// What a command acts on is its argument: `project set NAME`, `index PROJECT`, `pull merge ID`. What that belongs to
// is a flag: --project. Earlier versions had flags for both in some commands; those still work and are not shown.

// Named takes what a command acts on from its argument, or from the flag of earlier versions. optional is a command
// that can do without.
func Named(cmd *cobra.Command, value *string, flag, what string, optional bool) {
	cmd.Flags().StringVar(value, flag, "", what)
	_ = cmd.Flags().MarkHidden(flag) // it is there
	cmd.Args = cobra.MaximumNArgs(1)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			if cmd.Flags().Changed(flag) && *value != args[0] {
				return Usagef("%s: %q and --%s %q are given: leave out the flag; see '%s --help'", CommandName(cmd), args[0], flag,
					*value, cmd.CommandPath())
			}
			*value = args[0]
		}
		if *value == "" && !optional {
			return Usagef("%s needs %s: %s; see '%s --help'", CommandName(cmd), what, cmd.UseLine(), cmd.CommandPath())
		}
		return run(cmd, args)
	}
}

// CommandName is a command's words without the program's, which begins every error.
func CommandName(cmd *cobra.Command) string {
	_, name, ok := strings.Cut(cmd.CommandPath(), " ")
	if !ok {
		return cmd.CommandPath()
	}
	return name
}

// FlagError says what is wrong with a flag, and suggests similar ones. Where the command itself is unknown, its
// flags are too: then the command is what is wrong.
func FlagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); len(args) > 0 && cmd.HasSubCommands() {
		return UnknownCommand(cmd, args[0])
	}
	hint := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		hint = config.DidYouMean("--", config.Near(unknown.GetSpecifiedName(), names))
	}
	return Usagef("%w%s; see '%s --help'", err, hint, cmd.CommandPath())
}

// UnknownCommand says that there is no such command, and suggests similar ones.
func UnknownCommand(cmd *cobra.Command, name string) error {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	return Usagef("unknown command %q%s; see '%s --help'", name, config.DidYouMean("", cmd.SuggestionsFor(name)),
		cmd.CommandPath())
}

// flagWords says of what is wrong with a resource's fields which flags they came from: who typed a command knows no
// fields.
func flagWords(cmd *cobra.Command, err error) error {
	var list []api.Problem
	var here *api.InvalidError
	var there *control.Error // of the serving process
	switch {
	case errors.As(err, &here):
		list = here.Problems
	case errors.As(err, &there):
		list = there.Problems
	}
	if len(list) == 0 {
		return err
	}
	var lines []string
	for _, p := range list {
		name, index, _ := strings.Cut(p.Field, "[")
		for _, word := range []string{dashed(name), otherwiseNamed[name]} {
			f := cmd.Flags().Lookup(word)
			switch {
			case f == nil:
				continue
			case f.Hidden:
				p.Field = "the name"
			default:
				p.Field = "--" + word
				if values, err := cmd.Flags().GetStringArray(word); err == nil {
					if i, err := strconv.Atoi(strings.TrimSuffix(index, "]")); err == nil && i >= 0 && i < len(values) {
						p.Field += " " + strconv.Quote(values[i])
					}
				}
			}
			break
		}
		lines = append(lines, p.Field+": "+p.Message)
	}
	return errors.New(strings.Join(lines, "; "))
}

// otherwiseNamed are the flags whose names do not follow from the field.
var otherwiseNamed = map[string]string{"expiresAt": "expires", "scopes": "scope", "origins": "origin",
	"repository": "on-push-of"}

// dashed writes a field's name as flags are written: docsDir is docs-dir.
func dashed(field string) string {
	var b strings.Builder
	for _, r := range field {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// ClientFlags adds the flags that name a server and a key.
func ClientFlags(cmd *cobra.Command, c *client.Client) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&c.Base, "url", EnvOr("URL", "http://127.0.0.1:8080"), "address of the server (DOCENT_URL)")
	flags.StringVar(&c.Key, "key", EnvOr("KEY", ""), "API key; prefer DOCENT_KEY, which process listings do not show")
	flags.Lookup("key").DefValue = "" // help shows defaults
}

// A Caller calls the API of a server with a key; or without one that of the server on a data directory of this machine,
// as its operator.
type Caller struct {
	client.Client
	Local Operator
}

// Flags adds the flags that name a server and a key, or a data directory.
func (c *Caller) Flags(cmd *cobra.Command) {
	ClientFlags(cmd, &c.Client)
	flags := cmd.PersistentFlags()
	flags.String("data", config.Default().Data, "data directory of a server on this machine, used without a key (DOCENT_DATA)")
	flags.StringVar(&c.Local.Config, "config", os.Getenv(config.EnvPrefix+"CONFIG"), "configuration file of that server (TOML)")
}

// Authorize gets a key for a project of the server on this machine, if none was given. The project may be named by its id
// or its domain, or be the only one; both are known afterwards.
func (c *Caller) Authorize(cmd *cobra.Command, kind api.KeyKind, project, domain *string) error {
	if c.Key != "" {
		return nil
	}
	if cmd.Flags().Changed("url") || os.Getenv(config.EnvPrefix+"URL") != "" {
		return Required(cmd, "key")
	}
	c.Local.Here = operator.NoServerHere
	var made operator.LocalKey
	params := operator.LocalParams{Project: api.ProjectID(*project), Domain: *domain, Kind: kind}
	if err := c.Local.Run(cmd, operator.OpKeyLocal, params, &made); err != nil {
		return fmt.Errorf("%w. For a server elsewhere, give --url and --key", err)
	}
	c.Base, c.Key, *project, *domain = made.URL, made.Key, string(made.Project), made.Domain
	return nil
}

// Hint adds to an error what to do about it.
func Hint(cmd *cobra.Command, err error) error {
	var failed *url.Error
	if errors.As(err, &failed) && errors.Is(err, syscall.ECONNREFUSED) && cmd.Flags().Lookup("url") != nil {
		return fmt.Errorf("no server answers at %s: start one with `docent serve`, or name its address with --url (DOCENT_URL): %w",
			cmd.Flag("url").Value, failed.Err)
	}
	return err
}

// EnvOr is the value of an environment variable of Docent, named without its prefix, or a default.
func EnvOr(name, standard string) string {
	if v := os.Getenv(config.EnvPrefix + name); v != "" {
		return v
	}
	return standard
}
