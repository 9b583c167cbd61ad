# Appends to the file `out` a line for each file read: how many lines it has, and its name without the leading "./".
FNR == 1 { names[++files] = FILENAME; sub(/^\.\//, "", names[files]) }
{ lines[files]++ }
END {
  for (i = 1; i <= files; i++) {
    print lines[i], names[i] >> out
    total += lines[i]
  }
  print total " lines in " files " files"
}
