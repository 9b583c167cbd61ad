# Presses notes into a page: a title, headings, paragraphs, and a table with a row for each sighting.
function escaped(text) {
  gsub(/&/, "\\&amp;", text)
  gsub(/</, "\\&lt;", text)
  gsub(/>/, "\\&gt;", text)
  return text
}
function finish() {
  if (open != "") print "</" open ">"
  open = ""
}
function start(tag) {
  if (open == tag) return
  finish()
  print "<" tag ">"
  open = tag
}
function sighting(line,    words, place, deed) {
  split(line, words, " ")
  place = words[4]
  sub(/:$/, "", place)
  deed = substr(line, index(line, ": ") + 2)
  start("table")
  print "<tr><td>" words[1] "</td><td>" words[2] "</td><td>" words[3] "</td><td>" place "</td><td>" escaped(deed) "</td></tr>"
}
function heading(tag) {
  finish()
  if (tag == "h1") print "<title>" escaped(held) "</title>"
  print "<" tag ">" escaped(held) "</" tag ">"
  held = ""
}
# What a line is shows only in the next one: a heading is underlined.
function press() {
  if (held == "") finish()
  else if (held ~ /^[0-9][0-9]-[0-9][0-9] /) sighting(held)
  else {
    start("p")
    print escaped(held)
  }
}
BEGIN { print "<!doctype html>\n<meta charset=\"utf-8\">" }
/^===+$/ { heading("h1"); next }
/^---+$/ { heading("h2"); next }
{ press(); held = $0 }
END { press(); finish() }
