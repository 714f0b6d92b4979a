#!/usr/bin/perl
# Runs an OAI-PMH repository of the Perl library HTTP::OAI under a test's command, by lines on standard input.
#
#     change C U D    creates C records, updates U, deletes D; prints "changed"
#     advance N       sets its clock, which is five days late, N days forward; prints "advanced"
#
# The repository has 1,000 records, of which 100 are deleted, and 100 a page. All deletions are shown, for ever. It
# listens on loopback, at a port that is free, and prints "listening <base URL>" when it does.

use strict;
use warnings;
use utf8;

use HTTP::OAI;
use HTTP::OAI::Repository qw(:validate);
use HTTP::OAI::SAX::Driver;
use IO::Select;
use IO::Socket::INET;
use POSIX qw(strftime);
use URI;
use URI::Escape qw(uri_unescape);
use XML::LibXML;

$| = 1;

my ( $RECORDS, $DELETED_EVERY, $PAGE ) = ( 1_000, 10, 100 );
my $START  = 1_704_067_200;    # 2024-01-01
my $OAI_DC = 'http://www.openarchives.org/OAI/2.0/oai_dc/';
my $DC     = 'http://purl.org/dc/elements/1.1/';
my @SETS   = ( [ 'even', 'Even numbers' ], [ 'odd', 'Odd numbers' ] );

# No list of identifiers is due in the time of a test.
my $late = 5 * 86_400;
my @records =
  map { { number => $_, stamp => $START + $_ * 3_600, version => 1, deleted => $_ % $DELETED_EVERY == 0 } }
  0 .. $RECORDS - 1;
my $base;

sub now        { return time - $late }
sub written    { return strftime( '%Y-%m-%dT%H:%M:%SZ', gmtime shift ) }
sub identifier { return 'oai:peer.example:' . shift->{number} . '/a+b' }
sub set_of     { return shift->{number} % 2 ? 'odd' : 'even' }

sub change {
    my ( $creates, $updates, $deletes ) = @_;
    my @live = grep { !$_->{deleted} } @records;

    # Spread over the list, so that changes come from several of its pages.
    my $step = int( @live / ( $updates + $deletes + 1 ) ) || 1;
    for my $place ( 0 .. $updates + $deletes - 1 ) {
        my $kept = $live[ $place * $step ];
        $kept->{stamp} = now();
        if ( $place < $updates ) { $kept->{version}++ }
        else                     { $kept->{deleted} = 1 }
    }
    push @records, { number => scalar @records, stamp => now(), version => 1, deleted => 0 } for 1 .. $creates;
    return;
}

sub header {
    my $kept   = shift;
    my $header = HTTP::OAI::Header->new(
        identifier => identifier($kept),
        datestamp  => written( $kept->{stamp} ),
        $kept->{deleted} ? ( status => 'deleted' ) : (),
    );
    $header->setSpec( set_of($kept) );
    return $header;
}

sub record {
    my $kept   = shift;
    my $record = HTTP::OAI::Record->new( header => header($kept) );
    return $record if $kept->{deleted};
    my $document = XML::LibXML::Document->new( '1.0', 'UTF-8' );
    my $metadata = $document->createElement('metadata');
    $document->setDocumentElement($metadata);
    my $root = $document->createElementNS( $OAI_DC, 'oai_dc:dc' );
    $metadata->appendChild($root);
    my @fields = (
        title       => "Record $kept->{number}, version $kept->{version}",
        creator     => "Ångström & Söhne, <A> \"B\" 'C'",
        description => 'Two lines,' . "\n" . 'and more: ' . 'lorem ipsum ' x ( $kept->{number} % 50 ),
        identifier  => "https://peer.example/items/$kept->{number}?a=1&b=2",
    );
    while ( my ( $name, $value ) = splice @fields, 0, 2 ) {
        my $element = $document->createElementNS( $DC, "dc:$name" );
        $element->appendText($value);
        $root->appendChild($element);
    }
    $record->metadata( HTTP::OAI::Metadata->new( dom => $document ) );
    return $record;
}

sub failed { return HTTP::OAI::Error->new( code => shift, message => shift // 'it is so' ) }

sub matching {
    my %asked = @_;
    my $time  = sub { my $text = shift; return length $text == 10 ? "${text}T00:00:00Z" : $text };
    my @found = sort { $a->{stamp} <=> $b->{stamp} || $a->{number} <=> $b->{number} } @records;
    @found = grep { written( $_->{stamp} ) ge $time->( $asked{from} ) } @found if defined $asked{from};
    @found = grep { written( $_->{stamp} ) le $asked{until} } @found           if defined $asked{until};
    @found = grep { set_of($_) eq $asked{set} } @found                         if defined $asked{set};
    return @found;
}

# A page of a list. A token has the arguments of its list, and how many records came.
sub list {
    my ( $list, %asked ) = @_;
    my $cursor = 0;
    if ( defined $asked{resumptionToken} ) {
        my $token = $asked{resumptionToken};
        return failed('badResumptionToken') unless $token =~ s/\A(\d+)!//;
        $cursor = $1;
        %asked = map { ( split /=/, $_, 2 )[ 0, 1 ] } split /&/, $token;
    }
    return failed('cannotDisseminateFormat') if ( $asked{metadataPrefix} // '' ) ne 'oai_dc';
    my @found = matching(%asked);
    return failed('noRecordsMatch') unless @found;
    my $end = $cursor + $PAGE;
    $list->item( $list->verb eq 'ListRecords' ? record($_) : header($_) )
      for grep { defined } @found[ $cursor .. ( $end > @found ? $#found : $end - 1 ) ];
    my $state = join '&', map { "$_=$asked{$_}" } grep { defined $asked{$_} } qw(metadataPrefix set from until);
    if ( $cursor || $end < @found ) {
        $list->resumptionToken(
            HTTP::OAI::ResumptionToken->new(
                resumptionToken  => $end < @found ? "$end!$state" : '',
                completeListSize => scalar @found,
                cursor           => $cursor,
            )
        );
    }
    return $list;
}

sub answer {
    my %asked  = @_;
    my @errors = validate_request(%asked);
    return @errors if @errors;
    my $verb = $asked{verb};
    if ( $verb eq 'Identify' ) {
        return HTTP::OAI::Identify->new(
            repositoryName    => 'HTTP::OAI',
            baseURL           => $base,
            adminEmail        => 'a@peer.example',
            protocolVersion   => '2.0',
            earliestDatestamp => written($START),
            deletedRecord     => 'persistent',
            granularity       => 'YYYY-MM-DDThh:mm:ssZ',
        );
    }
    if ( $verb eq 'ListMetadataFormats' ) {
        my $formats = HTTP::OAI::ListMetadataFormats->new;
        $formats->metadataFormat(
            HTTP::OAI::MetadataFormat->new(
                metadataPrefix    => 'oai_dc',
                schema            => 'http://www.openarchives.org/OAI/2.0/oai_dc.xsd',
                metadataNamespace => $OAI_DC,
            )
        );
        return $formats;
    }
    if ( $verb eq 'ListSets' ) {
        my $sets = HTTP::OAI::ListSets->new;
        $sets->item( HTTP::OAI::Set->new( setSpec => $_->[0], setName => $_->[1] ) ) for @SETS;
        return $sets;
    }
    if ( $verb eq 'GetRecord' ) {
        my ($kept) = grep { identifier($_) eq $asked{identifier} } @records;
        return failed('idDoesNotExist') unless $kept;
        my $one = HTTP::OAI::GetRecord->new;
        $one->record( record($kept) );
        return $one;
    }
    return list( $verb eq 'ListRecords' ? HTTP::OAI::ListRecords->new : HTTP::OAI::ListIdentifiers->new, %asked );
}

sub document {
    my $query = shift;
    my %asked = map { my ( $name, $value ) = split /=/, $_, 2; ( $name => decoded($value) ) } split /&/, $query;
    my @said  = answer(%asked);
    my $response =
      HTTP::OAI::Response->new( requestURL => "$base?$query", responseDate => written( now() ) );
    for my $said (@said) {
        if   ( $said->isa('HTTP::OAI::Error') ) { $response->errors($said) }
        else                                    { $response->content($said) }
    }
    my $text;
    my $driver = HTTP::OAI::SAX::Driver->new( Handler => my $builder = XML::LibXML::SAX::Builder->new );
    $driver->start_oai_pmh;
    $response->generate($driver);
    $driver->end_oai_pmh;
    return $builder->result->toString;
}

sub decoded {
    my $text = shift // '';
    $text =~ tr/+/ /;
    return uri_unescape($text);
}

sub serve {
    my $client = shift;
    my ($request) = ( <$client> // '' ) =~ m{\AGET (\S+) HTTP};
    while ( defined( my $line = <$client> ) ) { last if $line =~ /\A\r?\n\z/ }
    my ( $status, $type, $body ) = ( '404 Not Found', 'text/plain', "there is nothing here\n" );
    if ( defined $request && $request =~ m{\A/oai\?(.*)\z} ) {
        ( $status, $type, $body ) = ( '200 OK', 'text/xml; charset=utf-8', document($1) );
    }
    utf8::encode($body) if utf8::is_utf8($body);
    print {$client} "HTTP/1.1 $status\r\nContent-Type: $type\r\nContent-Length: ", length $body,
      "\r\nConnection: close\r\n\r\n", $body;
    close $client;
    return;
}

my $listener = IO::Socket::INET->new( LocalAddr => '127.0.0.1', Listen => 64 ) or die "no port: $!";
$base = 'http://127.0.0.1:' . $listener->sockport . '/oai';
print "listening $base\n";

my $select = IO::Select->new( $listener, \*STDIN );
while (1) {
    for my $ready ( $select->can_read ) {
        if ( $ready == $listener ) {
            my $client = $listener->accept or next;
            local $SIG{PIPE} = 'IGNORE';
            serve($client);
            next;
        }
        sysread( STDIN, my $text, 4_096 ) or exit;
        for my $line ( split /\n/, $text ) {
            if ( $line =~ /\Achange (\d+) (\d+) (\d+)/ ) { change( $1, $2, $3 ); print "changed\n" }
            elsif ( $line =~ /\Aadvance (\d+)/ ) { $late -= $1 * 86_400; print "advanced\n" }
        }
    }
}
