# Writes report.txt from the ranked names, the ranked kinds and the ranked sources: each line is a count and a name.
function bar(count, unit,    text) {
  for (; count > 0; count -= unit) text = text "#"
  return text
}
function heading(text) {
  print "" > out
  print "  " text > out
}
BEGIN {
  out = "report.txt"
  print "  THE MILL POND: A SURVEY" > out
  print "  =======================" > out
}
FNR == 1 && FILENAME == "names.ranked" { heading("Seen most often") }
FNR == 1 && FILENAME == "kinds.txt" { heading("Sightings by kind") }
FILENAME == "names.ranked" {
  sightings += $1
  species++
  if (FNR <= 6) printf "    %-18s %4d  %s\n", $2, $1, bar($1, 1) > out
}
FILENAME == "kinds.txt" { printf "    %-18s %4d  %s\n", $2, $1, bar($1, 4) > out }
FILENAME == "sources.ranked" {
  lines += $1
  files++
  if (FNR == 1) heading("The longest sources of taskmill")
  if (FNR <= 4) printf "    %-46s %5d lines\n", $2, $1 > out
}
END {
  print "" > out
  printf "  %d sightings of %d species; %d lines of TypeScript in %d files.\n", sightings, species, lines, files > out
  print "  No unicorns." > out
  print "report.txt: " sightings " sightings of " species " species"
}
