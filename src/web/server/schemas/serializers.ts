import { SerializerSelector } from '@fastify/fast-json-stringify-compiler'

type BuildCompiler = ReturnType<typeof SerializerSelector>
type Compiler = ReturnType<BuildCompiler>
type Serializer = ReturnType<Compiler>

const buildCompiler = SerializerSelector()
/** By the named schemas and options, then by schema. */
const compiled = new Map<string, Map<string, Serializer>>()

/**
 * As Fastify does it, but equal schemas are compiled once. Compiling takes most of the time in which a web process starts: it reads all
 * named schemas again for each response of each route, and most of these responses are the same errors.
 */
export const buildSerializer: BuildCompiler = (named, options) => {
  const compile = buildCompiler(named, options)
  const setting = JSON.stringify([named, options])
  const serializers = compiled.get(setting) ?? new Map<string, Serializer>()
  compiled.set(setting, serializers)
  return (route) => {
    const key = JSON.stringify(route.schema)
    const serializer = serializers.get(key) ?? compile(route)
    serializers.set(key, serializer)
    return serializer
  }
}
