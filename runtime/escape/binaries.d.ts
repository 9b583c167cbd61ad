/** The programs in bin/ are embedded as files: what is imported is a path that can be read. */
declare module '*/taskmill-escape-linux-x64' {
  const path: string
  export default path
}
declare module '*/taskmill-escape-linux-arm64' {
  const path: string
  export default path
}
