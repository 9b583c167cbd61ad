# Reads the notes and complains about sightings that are not written as they should be: day, name, number, place, deed.
/^[0-9][0-9]-/ {
  sightings++
  if (!/^[01][0-9]-[0-3][0-9] [a-z-]+ [1-9][0-9]* [a-z]+: [^ ].*$/) {
    print FILENAME ":" FNR ": not a sighting: " $0
    faults++
  }
}
FNR == 1 { books++ }
END {
  print sightings " sightings in " books " books, " faults + 0 " faults"
  exit faults > 0
}
