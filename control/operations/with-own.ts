/** Objects with other members than their own. Their classes have private members, which only the object itself may touch. */

/** `target` with the members `own` in place of its own ones. */
export const withOwn = <T extends object>(target: T, own: Partial<T>): T =>
  new Proxy(target, { get: (_, name) => (name in own ? own[name as keyof T] : passed(target, name)) })

/** The member `name` of `target`, to be called without it. */
export function passed(target: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name, target)
  return typeof value === 'function' ? value.bind(target) : value
}
