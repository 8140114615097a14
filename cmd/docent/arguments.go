package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"docent/api"
	"docent/control"
)

// What a command acts on is its argument: `project set NAME`, `index PROJECT`, `pull merge ID`. What that belongs to
// is a flag: --project. Earlier versions had flags for both in some commands; those still work and are not shown.

// named takes what a command acts on from its argument, or from the flag of earlier versions. optional is a command
// that can do without.
func named(cmd *cobra.Command, value *string, flag, what string, optional bool) {
	cmd.Flags().StringVar(value, flag, "", what)
	_ = cmd.Flags().MarkHidden(flag) // it is there
	cmd.Args = cobra.MaximumNArgs(1)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			if cmd.Flags().Changed(flag) && *value != args[0] {
				return usagef("%s: %q and --%s %q are given: leave out the flag; see '%s --help'", commandName(cmd), args[0], flag,
					*value, cmd.CommandPath())
			}
			*value = args[0]
		}
		if *value == "" && !optional {
			return usagef("%s needs %s: %s; see '%s --help'", commandName(cmd), what, cmd.UseLine(), cmd.CommandPath())
		}
		return run(cmd, args)
	}
}

// commandName is a command's words without the program's, which begins every error.
func commandName(cmd *cobra.Command) string {
	_, name, ok := strings.Cut(cmd.CommandPath(), " ")
	if !ok {
		return cmd.CommandPath()
	}
	return name
}

// near are those of the names that somebody may have meant who wrote another word, by the measure that cobra has for
// commands.
func near(word string, names []string) []string {
	list := &cobra.Command{SuggestionsMinimumDistance: 2}
	if len(word) < 5 {
		list.SuggestionsMinimumDistance = 1 // two letters of four make any word of any other
	}
	for _, name := range names {
		list.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	found := list.SuggestionsFor(word)
	slices.Sort(found)
	return found
}

// didYouMean comes after a word that is not known.
func didYouMean(prefix string, names []string) string {
	if len(names) == 0 || len(names) > 3 {
		return "" // a list is what --help is for
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = prefix + name
	}
	return " (did you mean " + strings.Join(quoted, " or ") + "?)"
}

// flagError says what is wrong with a flag, and suggests similar ones. Where the command itself is unknown, its
// flags are too: then the command is what is wrong.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); len(args) > 0 && cmd.HasSubCommands() {
		return unknownCommand(cmd, args[0])
	}
	hint := ""
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		hint = didYouMean("--", near(unknown.GetSpecifiedName(), names))
	}
	return usagef("%w%s; see '%s --help'", err, hint, cmd.CommandPath())
}

func unknownCommand(cmd *cobra.Command, name string) error {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	return usagef("unknown command %q%s; see '%s --help'", name, didYouMean("", cmd.SuggestionsFor(name)),
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
