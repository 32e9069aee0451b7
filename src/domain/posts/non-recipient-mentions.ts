import type { Knex } from 'knex'
import { Contact } from '../../persistence/models/contact.js'
import { Person } from '../../persistence/models/person.js'
import { findMentions } from '../../protocol/mentions.js'
import type { Services } from '../../services/services.js'
import { readMentionedAddresses } from './texts.js'

/** Replaces mentions of people who cannot read a private text by links to their profiles. */
export async function replaceNonRecipientMentions(
  { config }: Pick<Services, 'config'>,
  transaction: Knex.Transaction,
  { text, aspectIds }: { readonly text: string; readonly aspectIds: readonly number[] },
): Promise<string> {
  const mentions = findMentions(text)
  if (mentions.length === 0) return text
  const mentionedPeople = await Person.byAddresses(transaction, readMentionedAddresses(text))
  const people = new Map(mentionedPeople.map((person) => [person.address, person]))
  const readers = await findReaders(transaction, aspectIds)

  let newText = ''
  let copiedTo = 0
  for (const { address, name, start, end } of mentions) {
    const person = people.get(address)
    if (person !== undefined && readers.has(person.id)) continue
    const label = toPlainLabel(name ?? (person?.name || address))
    const link = person === undefined ? label : `[${label}](${config.url}/people/${person.guid})`
    newText += text.slice(copiedTo, start) + link
    copiedTo = end
  }
  return newText + text.slice(copiedTo)
}

/** Removes characters from a name that would end the link or form a mention or a tag. */
function toPlainLabel(name: string): string {
  return name.replace(/[[\]{}]|(?<!\S)#/g, '')
}

async function findReaders(transaction: Knex.Transaction, aspectIds: readonly number[]): Promise<ReadonlySet<number>> {
  const members = await Contact.query(transaction)
    .select('contacts.personId')
    .joinRelated('aspects')
    .whereIn('aspects.id', [...aspectIds])
  return new Set(members.map((member) => member.personId))
}
