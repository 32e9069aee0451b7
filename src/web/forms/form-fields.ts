import type { FastifyRequest } from 'fastify'
import { readTime } from '../schemas/times.js'
import { RequestFault } from '../server/request-faults.js'
import { formText } from './form-text.js'

/** A tick box: sent only if ticked. */
export function isTicked(request: FastifyRequest, name: string): boolean {
  return formText(request, name) !== undefined
}

/** All values of a field that may be sent several times, as `name[]`. */
export function formTexts({ body }: FastifyRequest, name: string): readonly string[] {
  const value = typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined
  return [value].flat().filter((each) => typeof each === 'string')
}

export function formTime(request: FastifyRequest, name: string): Date | undefined {
  const text = formText(request, name)
  return text === undefined ? undefined : readTime(name, text)
}

export function formNumber(request: FastifyRequest, name: string): number | undefined {
  const text = formText(request, name)
  if (text === undefined) return undefined
  const number = Number(text)
  if (!Number.isSafeInteger(number)) throw new RequestFault(422, `"${name}" is not a whole number.`, { field: name })
  return number
}

/** One of a closed set of values. */
export function formChoice<Value extends string>(
  request: FastifyRequest,
  name: string,
  values: readonly Value[],
): Value | undefined {
  const text = formText(request, name)
  if (text === undefined) return undefined
  return requireChoice(name, text, values)
}

export function requireChoice<Value extends string>(name: string, text: string, values: readonly Value[]): Value {
  const choice = values.find((value) => value === text)
  if (choice === undefined) throw new RequestFault(422, `"${name}" is one of ${values.join(', ')}.`, { field: name })
  return choice
}

/** A parameter of the path of the route. */
export function pathText({ params }: FastifyRequest, name: string): string {
  return String(Reflect.get(Object(params), name) ?? '')
}

/** The row number in the path; with another text there is no such page. */
export function pathId(request: FastifyRequest, name = 'id'): number {
  const text = pathText(request, name)
  if (!/^[1-9][0-9]{0,14}$/.test(text)) throw new RequestFault(404, 'There is nothing here.')
  return Number(text)
}
