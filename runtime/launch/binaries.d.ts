/** The launchers in bin/ are embedded as files. The import is a path that can be read. */
declare module '*/taskmill-launcher-linux-x64' {
  const path: string
  export default path
}
declare module '*/taskmill-launcher-linux-arm64' {
  const path: string
  export default path
}
