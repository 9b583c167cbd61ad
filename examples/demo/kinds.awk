# Reads the list of species (name, kind) and then the counted names (count, name).
# Writes kinds.txt, the most frequent kind first: count, kind.
/^#/ { next }
FILENAME == "species.txt" { kind[$1] = $2; next }
!(kind[$2] in seen) { kinds++ }
{ seen[kind[$2]] += $1 }
END {
  for (i = 1; i <= kinds; i++) {
    most = ""
    for (k in seen) if (most == "" || seen[k] > seen[most] || (seen[k] == seen[most] && k < most)) most = k
    print seen[most], most > "kinds.txt"
    delete seen[most]
  }
  print kinds " kinds of creatures"
}
