/** Keeps requests to this machine away from `HTTP_PROXY`. */
export function bypassProxyForLoopback(env: Record<string, string | undefined>): void {
  if (!Object.keys(env).some((name) => /^(https?|all)_proxy$/i.test(name))) return
  const own = ['localhost', '127.0.0.1', '::1', '[::1]']
  const given = env.NO_PROXY ?? env.no_proxy
  env.NO_PROXY = [...(given ? [given] : []), ...own].join(',')
}
