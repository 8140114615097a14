{{- /* The variables of a file for kustomize, as YAML. */ -}}
{{- define "docent.env" -}}
{{- range regexFindAll "(?m)^[A-Z][A-Z0-9_]*=.*$" . -1 }}
{{- $pair := splitn "=" 2 . }}
{{ $pair._0 }}: {{ $pair._1 | quote }}
{{- end }}
{{- end }}
