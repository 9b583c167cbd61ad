/** The programs in bin/ are embedded as files. The import gives a readable path. */
declare module '*/taskmill-escape-linux-x64' {
  const path: string
  export default path
}
declare module '*/taskmill-escape-linux-arm64' {
  const path: string
  export default path
}
