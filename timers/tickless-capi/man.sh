#!/usr/bin/env bash
# Makes the manual pages of section 3 from include/tickless.h: tickless(3), and one page for each
# function, with the structs, enums, callbacks and constants that it takes. Usage: man.sh FOLDER.
# Prints the names of the files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
[ $# -eq 1 ] || { echo "usage: man.sh FOLDER" >&2 && exit 2; }
mkdir -p "$1"
awk -v folder="$1" '
  # Returns a line of text as the formatter reads it, with names in backquotes in bold.
  function roff(line,  bold) {
    gsub(/\\/, "\\e", line)
    while (sub(/`/, bold ? "\\fR" : "\\fB", line)) bold = !bold
    return line ~ /^[.\047]/ ? "\\&" line : line
  }
  function page(name, about, synopsis,  file) {
    file = folder "/" name ".3"
    printf ".TH %s 3 \"\" \"tickless\" \"Tickless\"\n.SH NAME\n%s \\- %s\n", name, name, about >file
    printf ".SH LIBRARY\nTickless (\\fI\\-ltickless\\fR, \\fIpkg-config tickless\\fR)\n" >file
    printf ".SH SYNOPSIS\n.nf\n.B #include <tickless.h>\n%s.fi\n.SH DESCRIPTION\n", synopsis >file
    print file
    return file
  }
  # Writes paragraphs and lists; a paragraph of errors has a heading of its own.
  function write(file, comment,  lines, count, line, i) {
    count = split(comment, lines, "\n") - 1
    for (i = 1; i <= count; i++) {
      line = lines[i]
      if (line == "") { if (lines[i + 1] !~ /^(Errors: |- )/) print ".PP" >file }
      else if (sub(/^Errors: /, "", line)) printf ".SH ERRORS\n%s\n", roff(line) >file
      else if (sub(/^- /, "", line)) printf ".IP \\(bu 2\n%s\n", roff(line) >file
      else { sub(/^ +/, "", line); print roff(line) >file }
    }
  }
  # Returns the first sentence without its full stop.
  function first(comment,  text) {
    text = comment
    gsub(/\n/, " ", text)
    gsub(/`/, "", text)
    if (match(text, /[.;:] /)) text = substr(text, 1, RSTART - 1)
    sub(/\.? *$/, "", text)
    return roff(text)
  }
  # Writes the types of a declaration, and the constants that these or the comment name. A name that
  # ends with dots stands for all constants that begin with it.
  function used(file, text,  i, name, header) {
    for (i = 1; i <= types; i++) {
      name = type_names[i]
      # tickless(3) has the statuses.
      if (text !~ name "[^a-z_]" || name == "tickless_status_t") continue
      show(file, name, header++ ? "" : ".SH TYPES\n")
      text = text type[name]
    }
    header = 0
    for (i = 1; i <= constants; i++) {
      name = constant_names[i]
      if (text !~ name "[^A-Z_]" && !names_all(text, name)) continue
      if (!header++) print ".SH CONSTANTS" >file
      printf ".TP\n.B %s\n", name >file
      write(file, constant[name])
    }
  }
  function show(file, name, header) {
    printf "%s.PP\n", header >file
    write(file, about[name])
    printf ".PP\n.nf\n%s.fi\n", roff_all(type[name]) >file
  }
  function names_all(text, name) {
    while (match(text, /TICKLESS_[A-Z_]+_\.\.\./)) {
      if (index(name, substr(text, RSTART, RLENGTH - 3)) == 1) return 1
      text = substr(text, RSTART + RLENGTH)
    }
    return 0
  }
  function roff_all(text,  lines, count, i, all) {
    count = split(text, lines, "\n") - 1
    for (i = 1; i <= count; i++) all = all roff(lines[i]) "\n"
    return all
  }
  /^\/\*\*$/ { in_comment = 1; comment = ""; next }
  in_comment && /^ \*\/$/ {
    in_comment = 0
    if (!overview) overview = comment
    next
  }
  in_comment { sub(/^ \* ?/, ""); if ($0 != "@file") comment = comment $0 "\n"; next }
  /^#define TICKLESS_[A-Z_]+ [^(]*$/ && comment {
    constant_names[++constants] = $2
    constant[$2] = comment
  }
  /^typedef ((struct|enum) .*\{|void \(\*)/ { in_type = 1; text = "" }
  in_type {
    text = text $0 "\n"
    if (text ~ /^typedef (struct|enum)/ ? !/^}/ : !/;$/) next
    in_type = 0
    match(text, /tickless_[a-z0-9_]+/)
    name = substr(text, RSTART, RLENGTH)
    if (text !~ / opaque\[|Opaque\./) {
      type_names[++types] = name
      type[name] = text
      about[name] = comment
    }
    comment = ""
  }
  /^(typedef|enum|struct|#define)[^(]*$/ && !/tickless_[a-z_]*\(/ { comment = "" }
  /^[a-z].*tickless_[a-z0-9_]*\(/ && !/^typedef/ { declaration = ""; in_declaration = 1 }
  in_declaration {
    declaration = declaration roff($0) "\n"
    if (!/;$/) next
    in_declaration = 0
    match(declaration, /tickless_[a-z0-9_]+\(/)
    name = substr(declaration, RSTART, RLENGTH - 1)
    file = page(name, first(comment), ".PP\n" declaration)
    write(file, comment)
    used(file, declaration comment)
    printf ".SH SEE ALSO\n.BR tickless (3)\n" >file
    close(file)
    index_of = index_of ".TP\n.BR " name " (3)\n" first(comment) "\n"
    comment = ""
  }
  END {
    file = page("tickless", "timers for programs that have millions of them", "")
    sub(/^[^\n]*\n\n/, "", overview)
    write(file, overview)
    show(file, "tickless_status_t", ".SH TYPES\n")
    printf ".SH FUNCTIONS\n%s", index_of >file
  }
' include/tickless.h
