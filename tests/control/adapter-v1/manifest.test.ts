/** Goal: what a model reads is what is checked. Method: rules over all tools; a table of forms that schemas take. */
import { describe, expect, test } from 'bun:test'
import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { capabilities, toolManifest } from '../../../control/adapter-v1/manifest.ts'
import { actionInputs } from '../../../control/operations/action-inputs.ts'
import { ACTION_KINDS, type ActionKind } from '../../../shared/contract/adapter-v1.ts'
import { publicSchema } from '../../../shared/http/openapi/public-schema.ts'
import { SAMPLES } from '../../support/actions.ts'

type JsonSchema = {
  readonly type?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly items?: JsonSchema
  readonly required?: readonly string[]
}

const { tools } = toolManifest(actionInputs, [])

describe('the tools', () => {
  test('are the kinds, in their order, which is always the same', () => {
    expect(tools.map((tool) => tool.action_kind)).toEqual([...ACTION_KINDS])
    expect(capabilities.action_kinds).toEqual(ACTION_KINDS)
    expect(JSON.stringify(toolManifest(actionInputs, []))).toBe(JSON.stringify({ schema_version: 'adapter.v1', tools }))
  })

  test.each(tools.map((tool) => [tool.name, tool] as const))('describe every parameter: %s', (_, tool) => {
    const schema = tool.input_schema as JsonSchema
    expect(schema.type).toBe('object')
    expect(tool.description).not.toBe('')
    const visit = (at: string, { properties = {}, items }: JsonSchema) => {
      for (const [name, property] of Object.entries(properties)) {
        expect({ at: `${at}.${name}`, description: property.description }).toEqual({
          at: `${at}.${name}`,
          description: expect.stringMatching(/\.$/),
        })
        visit(`${at}.${name}`, property)
      }
      if (items !== undefined) visit(`${at}[]`, items)
    }
    visit(tool.name, schema)
  })

  test.each(tools.map((tool) => [tool.name, tool] as const))(
    'are plain JSON Schema that providers take: %s',
    (_, tool) => {
      const text = JSON.stringify(tool.input_schema)
      expect(JSON.parse(text)).toEqual(tool.input_schema)
      expect(text).not.toMatch(/"(missing|expected|anyOf|patternProperties)"|"null"/)
    },
  )

  test.each([...ACTION_KINDS])('have the names that the schema of %s checks', (kind) => {
    const { properties, required } = tools.find((tool) => tool.action_kind === kind)!.input_schema as JsonSchema
    expect(Object.keys(properties ?? {})).toEqual(Object.keys(actionInputs[kind].properties))
    expect(required).toEqual(actionInputs[kind].required)
  })

  test.each(ACTION_KINDS.map((kind) => [kind, actionInputs[kind]] as const))(
    'have examples that are right: %s',
    (_, schema) => {
      const wrong: string[] = []
      const visit = (at: string, property: TSchema) => {
        for (const example of [...(property.examples ?? []), ...('default' in property ? [property.default] : [])]) {
          if (!TypeCompiler.Compile(property).Check(example)) wrong.push(`${at}: ${JSON.stringify(example)}`)
        }
        for (const [name, inner] of Object.entries<TSchema>(property.properties ?? {})) visit(`${at}.${name}`, inner)
      }
      visit('input', schema)
      expect(wrong).toEqual([])
    },
  )

  test.each(Object.entries(SAMPLES).filter(([kind]) => kind !== 'mcp.call'))(
    'take the sample of %s',
    (kind, { input }) => {
      expect(TypeCompiler.Compile(actionInputs[kind as ActionKind] as TObject).Check(input)).toBe(true)
    },
  )
})

describe('a published schema', () => {
  test.each<[string, TSchema, object]>([
    [
      'has no words of ours',
      Type.String({ missing: 'x', expected: 'y', minLength: 1 }),
      { type: 'string', minLength: 1 },
    ],
    [
      'keeps properties whose names are keywords',
      Type.Object({ expected: Type.String(), properties: Type.Object({ missing: Type.Number() }) }),
      {
        type: 'object',
        required: ['expected', 'properties'],
        properties: {
          expected: { type: 'string' },
          properties: { type: 'object', required: ['missing'], properties: { missing: { type: 'number' } } },
        },
      },
    ],
    [
      'keeps data as it is',
      Type.Object({}, { examples: [{ expected: 1 }], default: { missing: 2 } }),
      { type: 'object', properties: {}, examples: [{ expected: 1 }], default: { missing: 2 } },
    ],
    [
      'has no null',
      Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], { description: 'd' }),
      { type: 'integer', minimum: 0, description: 'd' },
    ],
    ['has an enum of texts', Type.Union([Type.Literal('a'), Type.Literal('b')]), { type: 'string', enum: ['a', 'b'] }],
    [
      'keeps other alternatives',
      Type.Union([Type.String(), Type.Number()]),
      { anyOf: [{ type: 'string' }, { type: 'number' }] },
    ],
    [
      'has a map as providers take it',
      Type.Record(Type.String(), Type.String()),
      { type: 'object', additionalProperties: { type: 'string' } },
    ],
  ])('%s', (_, schema, published) => {
    expect(publicSchema(schema)).toEqual(published as Record<string, unknown>)
  })
})

test('skills are tools of their own, under names that a model may use', () => {
  const skills = [
    { name: 'count words.sh', description: 'Counts words.' },
    { name: 'count_words.sh', description: '' },
    { name: 'x'.repeat(200), description: 'Long.' },
  ]
  const offered = toolManifest(actionInputs, skills).tools.slice(tools.length)
  expect(offered.map(({ name, tool_name, action_kind }) => ({ name, tool_name, action_kind }))).toEqual([
    { name: 'skill_count_words_sh', tool_name: 'count words.sh', action_kind: 'cli.run' },
    { name: 'skill_count_words_sh_2', tool_name: 'count_words.sh', action_kind: 'cli.run' },
    { name: `skill_${'x'.repeat(54)}`, tool_name: 'x'.repeat(200), action_kind: 'cli.run' },
  ])
  expect(offered[1]?.description).toBe('The local skill count_words.sh.')
})
