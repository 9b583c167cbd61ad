# Reads the pages and prints one with a link to each.
FNR == 1 { pages[++count] = FILENAME }
/^<h1>/ {
  titles[count] = $0
  gsub(/<[^>]*>/, "", titles[count])
}
END {
  print "<!doctype html>\n<meta charset=\"utf-8\">\n<title>The Mill Pond: A Field Guide</title>"
  print "<h1>The Mill Pond: A Field Guide</h1>\n<ul>"
  for (i = 1; i <= count; i++) print "<li><a href=\"" pages[i] "\">" titles[i] "</a></li>"
  print "</ul>"
}
