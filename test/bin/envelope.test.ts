import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, CommanderError } from 'commander'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { CommandError } from '../../bin/command-error.js'
import { envelopeCommands } from '../../bin/commands/envelope.js'

const folder = mkdtempSync(join(tmpdir(), 'pod-envelope-test-'))
afterAll(() => rmSync(folder, { recursive: true }))
afterEach(() => vi.restoreAllMocks())

for (const name of ['ann', 'quin']) {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  write(`${name}.pub`, publicKey.export({ type: 'spki', format: 'pem' }).toString())
  write(`${name}.key`, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
}
const annsKey = `ann@p.example=${path('ann.key')}`
const quinsKey = `quin@q.example=${path('quin.key')}`
const publicKeys = ['--key', `ann@p.example=${path('ann.pub')}`, '--key', `quin@q.example=${path('quin.pub')}`]

const post = write(
  'post.xml',
  '<status_message><author>ann@p.example</author><guid>0123456789abcdef</guid><created_at>2024-05-06T07:08:09Z</created_at><public>true</public><text>Hello</text></status_message>',
)
const comment = write(
  'comment.xml',
  '<comment><author>quin@q.example</author><guid>fedcba9876543210</guid><parent_guid>0123456789abcdef</parent_guid><text> Hi </text></comment>',
)

describe('pod envelope', () => {
  it('seals an entity and prints its type', async () => {
    const { stdout: envelope } = await run('seal', post, '--sender', annsKey)

    expect(envelope).toMatch(/^<\?xml [\s\S]*<\/me:env>\n$/)
    const { stdout } = await run('open', write('envelope.xml', envelope), ...publicKeys)
    expect(stdout).toMatch(/^A public message from ann@p\.example, signature valid: status_message\.\n\{/)
    expect(await examineMessage(envelope)).toEqual({
      accepted: true,
      way: 'public',
      sender: 'ann@p.example',
      author_signature: 'absent',
      entity: { entity_type: 'status_message', entity_data: expect.objectContaining({ text: 'Hello', public: true }) },
    })
  })

  it('accepts an entity in JSON form as well', async () => {
    const entity = write(
      'post.json',
      `\ufeff${JSON.stringify({ entity_type: 'account_deletion', entity_data: { author: 'ann@p.example' } })}`,
    )
    const { stdout } = await run('seal', entity, '--sender', annsKey)

    expect(await examineMessage(stdout)).toMatchObject({ accepted: true, entity: { entity_type: 'account_deletion' } })
  })

  it('adds the signature of an author', async () => {
    const { stdout } = await run('seal', comment, '--sender', annsKey, '--author-key', path('quin.key'))

    expect(await examineMessage(stdout)).toMatchObject({
      accepted: true,
      sender: 'ann@p.example',
      author_signature: 'valid',
    })
  })

  it.each([
    ['without a signature', []],
    ['with a wrong signature', ['--author-key', path('ann.key')]],
  ])('warns that a comment sent by its author %s may still be rejected', async (_what, words) => {
    const { stdout } = await run('seal', comment, '--sender', quinsKey, ...words)
    const opened = await run('open', write('envelope.xml', stdout), ...publicKeys)

    expect(opened.stdout).toContain('A pod accepts this only for a post of the same sender.\n')
  })

  it('prints no such warning for a comment with a valid signature, or a post', async () => {
    const signed = await run('seal', comment, '--sender', quinsKey, '--author-key', path('quin.key'))
    for (const { stdout } of [signed, await run('seal', post, '--sender', annsKey)]) {
      const opened = await run('open', write('envelope.xml', stdout), ...publicKeys)
      expect(opened.stdout).toContain('signature valid')
      expect(opened.stdout).not.toContain('only for a post')
    }
  })

  it('encrypts for a recipient and decrypts for them alone', async () => {
    const { stdout } = await run('seal', post, '--sender', annsKey, '--for', path('quin.pub'))

    expect(JSON.parse(stdout)).toHaveProperty('aes_key')
    expect(await examineMessage(stdout, '--recipient', quinsKey)).toMatchObject({ accepted: true, way: 'private' })
    expect(await examineMessage(stdout, '--recipient', annsKey)).toEqual({
      accepted: false,
      way: 'private',
      claimed_sender: null,
      fault: 'DecryptionFailed',
      outcome: 'drop',
      reason: 'ann@p.example cannot decrypt it',
    })
    expect(await examineMessage(stdout)).toMatchObject({
      fault: 'DecryptionFailed',
      reason: expect.stringContaining('no recipient'),
    })
  })
})

describe('pod envelope open', () => {
  async function sealEnvelope(payload: string, ...words: string[]): Promise<string> {
    return (await run('seal', payload, '--sender', annsKey, ...words)).stdout
  }

  it('names the person whose key is missing', async () => {
    const { failure, stdout } = await run(
      'open',
      write('e', await sealEnvelope(post)),
      '--key',
      `quin@q.example=${path('quin.pub')}`,
    )

    expect(stdout).toBe('It claims to be from ann@p.example.\n')
    expect(failure).toEqual(new CommandError('A pod rejects it: SenderKeyNotFound, no key of ann@p.example was named.'))
  })

  it.each([
    ['what is not an envelope', () => 'hello', 'InvalidEnvelope'],
    ['a changed signature', async () => (await sealEnvelope(post)).replace(/">.{8}/, '">AAAAAAAA'), 'InvalidSignature'],
    [
      'a payload by another person',
      () => sealEnvelope(write('other.xml', '<account_deletion><author>quin@q.example</author></account_deletion>')),
      'InvalidSender',
    ],
    ['a comment without the signature it needs', () => sealEnvelope(comment), 'SignatureVerificationFailed'],
    [
      'a comment with another signature',
      () => sealEnvelope(comment, '--author-key', path('ann.key')),
      'SignatureVerificationFailed',
    ],
    ['a contact in public', () => sealEnvelope(write('contact.xml', contactFor('quin@q.example'))), 'NotPublic'],
  ])('refuses %s with the code that pods log', async (_what, make, fault) => {
    expect(await examineMessage(await make())).toMatchObject({ accepted: false, fault, outcome: 'drop' })
  })

  it('rejects a message that is encrypted for one person and addressed to another', async () => {
    const message = await sealEnvelope(write('contact.xml', contactFor('bob@b.example')), '--for', path('quin.pub'))

    expect(await examineMessage(message, '--recipient', quinsKey)).toMatchObject({ fault: 'RecipientMismatch' })
  })
})

describe('pod envelope, with wrong arguments', () => {
  it.each([
    ['without a sender', ['seal', post]],
    ['with a sender without a key', ['seal', post, '--sender', 'ann@p.example']],
    ['with a sender that is not an address', ['seal', post, '--sender', `ann=${path('ann.key')}`]],
    ['with a public key for a private one', ['seal', post, '--sender', `ann@p.example=${path('ann.pub')}`]],
    ['with a private key for a public one', ['open', post, '--key', annsKey]],
    ['with a key file that is not there', ['open', post, '--key', `ann@p.example=${path('nothing')}`]],
    ['with a file that is not there', ['open', path('nothing')]],
  ])('reports an error %s', async (_what, words) => {
    vi.spyOn(process.stderr, 'write').mockReturnValue(true)

    expect((await run(...words)).failure).toBeInstanceOf(CommanderError)
  })

  it.each([
    ['no XML', 'hello', 'InvalidPayload'],
    ['no entity', '<person/>', 'UnknownEntity'],
    ['an entity without what it needs', '<comment/>', 'ValidationError'],
    ['JSON that is none', '{', 'not valid JSON'],
    [
      'an entity that does not travel alone',
      '{"entity_type":"location","entity_data":{"address":"a","lat":"1","lng":"2"}}',
      'UnknownEntity',
    ],
  ])('does not seal %s', async (_what, input, reason) => {
    const { failure } = await run('seal', write('input', input), '--sender', annsKey)

    expect(failure).toBeInstanceOf(CommandError)
    expect(String(failure)).toContain(reason)
  })

  it('does not add an author to an entity without one', async () => {
    const { failure } = await run('seal', post, '--sender', annsKey, '--author-key', path('ann.key'))

    expect(failure).toEqual(new CommandError('A status_message has no author signature.'))
  })
})

function path(name: string): string {
  return join(folder, name)
}

function write(name: string, content: string): string {
  writeFileSync(path(name), content)
  return path(name)
}

function contactFor(recipient: string): string {
  return `<contact><author>ann@p.example</author><recipient>${recipient}</recipient></contact>`
}

async function examineMessage(message: string, ...words: string[]): Promise<unknown> {
  const { stdout, failure } = await run('open', write('message', message), ...publicKeys, ...words, '--json')
  const result = JSON.parse(stdout)
  expect(failure instanceof CommandError).toBe(!result.accepted)
  return result
}

/** Runs the command in this process. */
async function run(...words: string[]): Promise<{ readonly stdout: string; readonly failure: unknown }> {
  const stdout: string[] = []
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => stdout.push(String(chunk)) > 0)
  const program = new Command('pod').exitOverride()
  envelopeCommands(program)
  const failure = await program.parseAsync(['envelope', ...words], { from: 'user' }).catch((error: unknown) => error)
  write.mockRestore()
  return { stdout: stdout.join(''), failure: failure === program ? undefined : failure }
}
