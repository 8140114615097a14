package analysis

import "strings"

// Words of the trade that are written short or in full: a question has one form, the page that answers it the other.
var abbreviations = func() map[string][]string {
	m := make(map[string][]string)
	for line := range strings.Lines(`
env environment
config configuration configure
dir directory folder
repo repository
auth authentication
admin administrator
db database
app application
param parameter
arg argument
var variable
js javascript
ts typescript
id identifier
url uri
dev development
prod production
info information
spec specification
cmd command
msg message
err error
lib library
pkg package
img image picture
doc documentation
k8s kubernetes
`) {
		words := strings.Fields(line)
		for _, w := range words {
			for _, other := range words {
				if other != w {
					m[w] = append(m[w], other)
				}
			}
		}
	}
	return m
}()

// Abbreviations are the other forms of a word that is written short or in full.
func Abbreviations(word string) []string { return abbreviations[word] }
