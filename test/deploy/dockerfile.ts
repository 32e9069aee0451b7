import { readFile } from 'node:fs/promises'

export interface Instruction {
  readonly name: string
  readonly value: string
}

/** The instructions of a Dockerfile, with continued lines joined and comments removed. */
export async function readDockerfile(): Promise<readonly Instruction[]> {
  const text = await readFile(new URL('../../deploy/Dockerfile', import.meta.url), 'utf8')
  return text
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('#'))
    .join('\n')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', value = ''] = /^([A-Z]+)\s+(.*)$/.exec(line.trim()) ?? []
      return { name, value: value.replace(/\s+/g, ' ') }
    })
}

export function valuesOf(instructions: readonly Instruction[], name: string): readonly string[] {
  return instructions.filter((instruction) => instruction.name === name).map(({ value }) => value)
}

/** The instructions of the last stage, which becomes the image. */
export function lastStage(instructions: readonly Instruction[]): readonly Instruction[] {
  return instructions.slice(instructions.findLastIndex(({ name }) => name === 'FROM'))
}
