# Reads notes and the page that was pressed of them, one after the other, and proves that nothing was lost.
# A line for each proof, `ok` or `not ok`; exits with 1 if one did not hold.
function proof(holds, what) {
  proofs++
  print (holds ? "ok " : "not ok ") proofs " - " what
  if (!holds) failed++
}
function settle() {
  if (page == "") return
  proof(rows == sightings, page ": " rows + 0 " of " sightings + 0 " sightings")
  proof(opened == closed, page ": " closed + 0 " of " opened + 0 " tags closed")
  proof(titles == 1, page ": " titles + 0 " title")
  page = ""
  rows = sightings = opened = closed = titles = 0
}
FNR == 1 && FILENAME ~ /\.txt$/ { settle() }
FNR == 1 && FILENAME ~ /\.html$/ { page = FILENAME }
FILENAME ~ /\.txt$/ {
  if (/^[0-9][0-9]-[0-9][0-9] /) sightings++
  next
}
/^<(!doctype|meta)/ { next }
{
  rows += gsub(/<tr>/, "<tr>")
  titles += gsub(/<title>/, "<title>")
  closed += gsub(/<\//, "</")
  opened += gsub(/<[a-z]/, "&")
}
END {
  settle()
  print proofs + 0 " proofs, " failed + 0 " failed"
  exit failed > 0 || proofs == 0
}
