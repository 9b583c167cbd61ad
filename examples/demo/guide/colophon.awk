# Reads all pages of the guide and prints how it came out. `host` says where it was built.
function bar(count, unit,    text) {
  for (; count > 0; count -= unit) text = text "#"
  return text
}
FNR == 1 { pages[++count] = FILENAME }
{
  bytes[count] += length($0) + 1
  rows[count] += gsub(/<tr>/, "<tr>")
}
END {
  print "  THE MILL POND: A FIELD GUIDE"
  print "  ============================"
  print ""
  for (i = 1; i <= count; i++) {
    printf "    %-12s %6d bytes  %3d sightings  %s\n", pages[i], bytes[i], rows[i], bar(rows[i], 4)
    sightings += rows[i]
    total += bytes[i]
  }
  print ""
  printf "  %d pages, %d sightings, %d bytes. Built on %s.\n", count, sightings, total, host
}
