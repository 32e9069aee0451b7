import { HTTP_LIMITS } from '../server/limits.js'
import { MalformedBody } from '../server/request-faults.js'

export type FormValue = string | FormValue[] | { [name: string]: FormValue }

/**
 * Reads a form with keys in bracket form: `a[]=1&a[]=2` is a list, `a[b]=1` an object, and the last of two equal names wins.
 * All values are texts; the route interprets them.
 */
export function readForm(text: string): { [name: string]: FormValue } {
  const form: { [name: string]: FormValue } = Object.create(null)
  let fields = 0
  for (const [key, value] of new URLSearchParams(text)) {
    fields += 1
    if (fields > HTTP_LIMITS.formFields) throw new MalformedBody('The form has too many fields.')
    const path = readKey(key)
    if (path.length > HTTP_LIMITS.formDepth) throw new MalformedBody('The form is nested too deep.')
    setField(form, path, value)
  }
  return form
}

/** `poll[answers][]` → poll, answers, "". A key with brackets in another position is an ordinary name. */
function readKey(key: string): string[] {
  const [, name, brackets] = /^([^[\]]+)((?:\[[^[\]]*\])*)$/.exec(key) ?? []
  if (name === undefined || brackets === undefined) return [key]
  return [name, ...Array.from(brackets.matchAll(/\[([^[\]]*)\]/g), ([, inside = '']) => inside)]
}

function setField(target: { [name: string]: FormValue }, path: readonly string[], value: string): void {
  const [name, next, ...rest] = path
  if (name === undefined) return
  if (next === undefined) {
    target[name] = value
    return
  }
  const inside = target[name]
  if (next === '') {
    if (rest.length > 0) throw new MalformedBody('A list in a form can hold only texts.')
    if (inside === undefined) target[name] = [value]
    else if (Array.isArray(inside)) inside.push(value)
    else throw new MalformedBody(`The field ${name} is given in two forms.`)
    return
  }
  if (Array.isArray(inside) || typeof inside === 'string') {
    throw new MalformedBody(`The field ${name} is given in two forms.`)
  }
  const object: { [name: string]: FormValue } = inside ?? Object.create(null)
  target[name] = object
  setField(object, [next, ...rest], value)
}
