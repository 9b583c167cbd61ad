/** Spellings of one IP address that programs understand, and none that means another address. */
import fc from 'fast-check'

const hex = (value: number) => value.toString(16)

/** Numbers of 32 bits that matter: of each special block, and any. */
export const ipv4Values = fc.oneof(
  fc.nat(0xffff_ffff),
  fc
    .tuple(fc.constantFrom(0x0a00, 0x7f00, 0xa9fe, 0xac10, 0xc0a8, 0x6440, 0xe000, 0xffff, 0x0000), fc.nat(0xffff))
    .map(([high, low]) => high * 0x1_0000 + low),
)

export const dotted = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.')

/** A number as resolvers read it: decimal, octal or hexadecimal, in either case, with leading zeros. */
const asNumber = (value: number) =>
  fc.oneof(
    fc.constant(String(value)),
    fc.nat(3).map((zeros) => `0${'0'.repeat(zeros)}${value.toString(8)}`),
    fc.tuple(fc.constantFrom('0x', '0X'), fc.nat(3), fc.boolean()).map(([prefix, zeros, isUpper]) => {
      const digits = '0'.repeat(zeros) + hex(value)
      return prefix + (isUpper ? digits.toUpperCase() : digits)
    }),
  )

/** The values of 1 to 4 parts; the last one fills the rest. */
const parts = (value: number, count: number): number[] => {
  const leading = Array.from({ length: count - 1 }, (_, i) => (value >>> (24 - 8 * i)) & 255)
  const restBits = 32 - 8 * (count - 1)
  return [...leading, restBits === 32 ? value : value % 2 ** restBits]
}

/** Characters that IDNA maps to digits and dots. */
const wide = (text: string) => text.replace(/[0-9]/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))

/** A spelling of an IPv4 address. */
export const ipv4Spelling = (value: number): fc.Arbitrary<string> =>
  fc
    .record({
      numbers: fc.integer({ min: 1, max: 4 }).chain((count) => fc.tuple(...parts(value, count).map(asNumber))),
      dots: fc.constantFrom('.', '.', '。', '．', '｡'),
      isWide: fc.boolean(),
      end: fc.constantFrom('', '', '.', '。'),
      hidden: fc.constantFrom('', '', '\u00ad', '\u200b'),
    })
    .map(({ numbers, dots, isWide, end, hidden }) => {
      const text = numbers.join(dots)
      return (isWide ? wide(text) : text) + hidden + end
    })

/** A spelling of the IPv6 address of eight groups. */
export const ipv6Spelling = (groups: readonly number[]): fc.Arbitrary<string> => {
  const start = groups.indexOf(0)
  const after = groups.findIndex((group, i) => i > start && group !== 0)
  const end = start < 0 ? -1 : after < 0 ? 8 : after
  return fc
    .record({
      isUpper: fc.boolean(),
      width: fc.constantFrom(1, 4),
      isShort: fc.boolean(),
      isDotted: fc.boolean(),
      zone: fc.constantFrom('', '', '%eth0', '%25eth0', '%1', '%en0.1'),
      hasBrackets: fc.boolean(),
    })
    .map(({ isUpper, width, isShort, isDotted, zone, hasBrackets }) => {
      const texts = groups.map((group) => hex(group).padStart(width, '0'))
      const isShortened = isShort && start >= 0
      const tail = isDotted && !(isShortened && end > 6) ? [dotted(groups[6]! * 0x1_0000 + groups[7]!)] : texts.slice(6)
      const all = [...texts.slice(0, 6), ...tail]
      const text = isShortened ? `${all.slice(0, start).join(':')}::${all.slice(end).join(':')}` : all.join(':')
      const cased = (isUpper ? text.toUpperCase() : text) + zone
      return hasBrackets ? `[${cased}]` : cased
    })
}
