/** The launchers as files: importing one gives its path. */
declare module '*-linux-x64' {
  const path: string
  export default path
}
declare module '*-linux-arm64' {
  const path: string
  export default path
}
