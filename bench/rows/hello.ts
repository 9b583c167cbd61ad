/** The floor of a program that prints one line. */
console.log('hello')
